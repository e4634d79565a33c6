import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type CloudEvent, decode, EVENTS_STREAM, subjectOfEvent, zCloudEvent } from '@colonnade/contracts';
import { toPlain } from '@colonnade/value';
import { startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { skipWithoutMount, smallDisk } from '../../../test/support/small-disk.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type PreparedSink, prepareSink, publishMany, readStream } from './support.ts';

const LIMIT = { limitMs: 20_000 };
const WEBHOOK = {
  AUDIT_WEBHOOK_INITIAL_BACKOFF_MS: '20',
  AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '50',
  AUDIT_WEBHOOK_MAX_BACKLOG: '100',
};

describe('alerts on the bus', () => {
  let sink: PreparedSink;
  let kubeconfig: string;
  const owned = new AsyncDisposableStack();
  before(async () => {
    sink = owned.use(await prepareSink({ auditWebhook: true }));
    const webhook = owned.use(await startWebhook());
    await webhook.stop();
    kubeconfig = await writeKubeconfig(sink.dir, { server: webhook.url });
  });
  after(() => owned.disposeAsync());
  const told = async (): Promise<CloudEvent[]> =>
    (await readStream(sink.bus, EVENTS_STREAM)).map((bytes) => decode(zCloudEvent, bytes));
  const alerts = async () =>
    (await told()).map(({ subject, data }) => `${(data as { alert: string }).alert} ${subject}`);
  const untilTold = (alert: string) => waitFor(alert, async () => (await alerts()).includes(alert), LIMIT);

  test('a dead webhook and its backlog: one each, however many records and replicas, also when EVENTS was away', async () => {
    const witness = await sink.bus.witness();
    await witness.request(`$JS.API.STREAM.DELETE.${EVENTS_STREAM}`);
    const changes = { ...WEBHOOK, AUDIT_WEBHOOK_CONFIG_FILE: kubeconfig };
    await using _one = await sink.start(changes);
    await using _two = await sink.start(changes);
    await publishMany(sink.publisher, 'event', 80);
    const untold = 'the bus cannot be told of an alert';
    await waitFor('the faults', () => sink.logLines.filter((l) => l.includes(untold)).length >= 2, LIMIT);
    await waitFor('the alert', () => sink.logLines.some((l) => l.includes('backlog is near')), LIMIT);
    const MIB = 1024 * 1024;
    const provisioner = await sink.bus.as('provisioner');
    await provisioner.provisionStreams({
      ...{ maxEventsBytes: 16 * MIB, maxAuditBytes: 16 * MIB, replicas: 1, auditWebhook: true },
    });
    await untilTold('backend_failing /audit/webhook');
    await untilTold('backlog /audit/webhook');
    await publishMany(sink.publisher, 'more', 15);
    const lines = () => sink.logLines.filter((line) => line.includes('a batch failed')).length;
    const before = lines();
    await waitFor('more failures', () => lines() > before + 3, LIMIT);
    assert.deepEqual((await alerts()).sort(), ['backend_failing /audit/webhook', 'backlog /audit/webhook']);
    for (const event of await told()) assert.equal(subjectOfEvent(event), 'colonnade.events.v1.audit.alert');
    const backlog = (await told()).find(({ data }) => (data as { alert: string }).alert === 'backlog');
    const { details } = toPlain(backlog?.data ?? null) as { details: { waiting: number; percent: number } };
    assert.ok(details.waiting >= 70 && details.percent >= 70, JSON.stringify(details));
    await witness.close();
  });

  test('a log that cannot be opened, until it can', async () => {
    const folder = path.join(sink.dir, 'in-the-way');
    await writeFile(folder, '');
    await using running = await sink.start({ AUDIT_LOG_PATH: path.join(folder, 'audit.log') });
    await untilTold('backend_failing /audit/file');
    const failing = async () =>
      /audit_sink_failing\{backend="file"[^}]*\} (\d)/u.exec(
        await (await fetch(`${running.url}/metrics`)).text(),
      )?.[1];
    assert.equal(await failing(), '1');
    await rm(folder);
    await waitFor('the log to be written', async () => (await failing()) === '0', LIMIT);
  });

  test('a log on a full disk', { skip: skipWithoutMount() }, async () => {
    await using own = await prepareSink();
    await using disk = await smallDisk(2);
    await using _sink = await own.start({ AUDIT_LOG_PATH: path.join(disk.path, 'audit.log') });
    await publishMany(own.publisher, 'event', 40, 'x'.repeat(100_000));
    const found = await waitFor(
      'the alert',
      async () => (await readStream(own.bus, EVENTS_STREAM)).map((m) => decode(zCloudEvent, m))[0],
      LIMIT,
    );
    assert.deepEqual(toPlain(found.data), {
      ...{ alert: 'backend_failing', backend: 'file', details: { code: 'ENOSPC' } },
    });
  });
});
