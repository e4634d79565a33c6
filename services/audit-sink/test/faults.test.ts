import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { verifyLog } from '@colonnade/audit-log';
import { type ServiceProcess, startService } from '@colonnade/embedded';
import { startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { eventOf, type PreparedSink, prepareSink, publish, readIds } from './support.ts';

/** 1 MB is the smallest file there is: with these events it is rotated after a few hundred of them. */
const PADDING = 'p'.repeat(3000);

/** Publishes without a pause until it is stopped; what the stream acknowledged is what counts. */
function startFlow(sink: PreparedSink, prefix: string, atOnce = 8) {
  const acknowledged: string[] = [];
  let running = true;
  let number = 0;
  const work = async () => {
    while (running) {
      number += 1;
      const id = `${prefix}-${number}`;
      // A publish that is not acknowledged is tried as another record: it may be stored, and may not.
      const stored = await publish(sink.publisher, eventOf(id, { userAgent: PADDING })).catch(
        () => undefined,
      );
      if (stored !== undefined) acknowledged.push(id);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  const workers = Array.from({ length: atOnce }, work);
  return {
    acknowledged,
    async stop() {
      running = false;
      await Promise.all(workers);
      return acknowledged;
    },
  };
}

describe('while records flow', () => {
  let sink: PreparedSink;
  let service: ServiceProcess;
  let webhook: Awaited<ReturnType<typeof startWebhook>>;
  before(async () => {
    sink = await prepareSink({
      auditWebhook: true,
      maxAuditBytes: 256 * 1024 * 1024,
      maxFileBytes: 512 * 1024 * 1024,
    });
    webhook = await startWebhook();
    const config = await writeKubeconfig(sink.dir, { server: webhook.url });
    service = await startService({
      name: 'audit-sink',
      portVariable: 'OPS_PORT',
      logFile: path.join(sink.dir, 'sink.log'),
      env: {
        ...sink.env,
        AUDIT_LOG_MAXSIZE: '1',
        AUDIT_LOG_MAXBACKUP: '0',
        AUDIT_LOG_COMPRESS: 'true',
        AUDIT_ANCHOR_MS: '200',
        AUDIT_WEBHOOK_CONFIG_FILE: config,
        AUDIT_WEBHOOK_INITIAL_BACKOFF_MS: '50',
        AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '200',
        AUDIT_WEBHOOK_BATCH_THROTTLE_QPS: '1000',
      },
    });
  });
  after(async () => {
    await service?.[Symbol.asyncDispose]();
    await webhook?.[Symbol.asyncDispose]();
    await sink?.[Symbol.asyncDispose]();
  });

  const exactlyOnce = async (wanted: readonly string[]) => {
    const last = wanted.at(-1) as string;
    const options = { limitMs: 30_000, everyMs: 200 };
    await waitFor(`${last} in the file`, async () => (await readIds(sink.logPath)).includes(last), options);
    const ids = await waitFor(
      'all in the file',
      async () => {
        const now = await readIds(sink.logPath);
        const there = new Set(now);
        return wanted.every((id) => there.has(id)) ? now : undefined;
      },
      options,
    );
    assert.equal(new Set(ids).size, ids.length, 'a record stands in the file twice');
    await waitFor(
      'all at the webhook',
      () => {
        const there = new Set(webhook.ids());
        return wanted.every((id) => there.has(id));
      },
      options,
    );
    const verified = await verifyLog(sink.logPath, await sink.anchors());
    assert.equal(verified.fault, undefined);
    assert.equal(verified.lines, ids.length);
    assert.ok(verified.anchors > 0);
    assert.deepEqual(await sink.deadLetters(), []);
  };

  test('kill -9 of the sink, twenty times', { timeout: 280_000 }, async () => {
    const flow = startFlow(sink, 'kill');
    for (let i = 0; i < 20; i += 1) {
      const count = flow.acknowledged.length;
      await waitFor('some more', () => flow.acknowledged.length > count + 100);
      await service.kill('SIGKILL');
      await service.restart();
    }
    await exactlyOnce(await flow.stop());
  });

  test('nats-server is killed and started anew', async () => {
    const flow = startFlow(sink, 'nats');
    for (let i = 0; i < 3; i += 1) {
      const count = flow.acknowledged.length;
      await waitFor('some more', () => flow.acknowledged.length > count + 100, { limitMs: 20_000 });
      await sink.bus.nats.kill('SIGKILL');
      await sink.bus.nats.restart();
    }
    const count = flow.acknowledged.length;
    await waitFor('some more', () => flow.acknowledged.length > count + 100, { limitMs: 20_000 });
    await exactlyOnce(await flow.stop());
  });
});
