import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { type AuditEvent, auditWebhookConsumer } from '@colonnade/contracts';
import { type ServiceProcess, startService } from '@colonnade/embedded';
import { startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { eventOf, type PreparedSink, prepareSink, publish, readLines } from './support.ts';

const LIMIT = { limitMs: 30_000, everyMs: 100 };
const BATCH = 100;

/** Two processes that share a consumer and a folder; one gives a dead webhook up much sooner than the other. */
let sink: PreparedSink;
let webhook: Awaited<ReturnType<typeof startWebhook>>;
let hasty: ServiceProcess;
const owned = new AsyncDisposableStack();
const seqs = new Map<string, number>();

before(async () => {
  sink = owned.use(await prepareSink({ auditWebhook: true }));
  webhook = owned.use(await startWebhook());
  await webhook.stop();
  const kubeconfig = await writeKubeconfig(sink.dir, { server: webhook.url });
  const replica = async (name: string, maxBacklog: string) =>
    owned.use(
      await startService({
        name: 'audit-sink',
        portVariable: 'OPS_PORT',
        logFile: path.join(sink.dir, `${name}.log`),
        env: {
          ...sink.env,
          AUDIT_WEBHOOK_CONFIG_FILE: kubeconfig,
          AUDIT_WEBHOOK_MAX_BACKLOG: maxBacklog,
          AUDIT_WEBHOOK_BATCH_MAX_SIZE: String(BATCH),
          AUDIT_WEBHOOK_INITIAL_BACKOFF_MS: '200',
          AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '50',
          AUDIT_WEBHOOK_BATCH_THROTTLE_QPS: '1000',
        },
      }),
    );
  // There before it starts, so that it takes whole lists: one it sends, and the next.
  await store('early', 3 * BATCH);
  await replica('patient', '100000');
  await waitFor('it to hold two lists', async () => (await consumer()).num_ack_pending === 2 * BATCH, LIMIT);
  hasty = await replica('hasty', '400');
});
after(() => owned.disposeAsync());

const store = async (prefix: string, count: number) => {
  for (let i = 0; i < count; i += 1) {
    const id = `${prefix}-${i}`;
    seqs.set(id, await publish(sink.publisher, eventOf(id)));
  }
};

type Info = { num_pending: number; num_ack_pending: number; delivered: { consumer_seq: number } };
async function consumer(): Promise<Info> {
  const { stream, durable } = auditWebhookConsumer;
  const witness = await sink.bus.witness();
  const info = await witness.request(`$JS.API.CONSUMER.INFO.${stream}.${durable}`);
  await witness.close();
  return info.json<Info>();
}

async function gaps(): Promise<{ from: number; to: number; count: number }[]> {
  const events = (await readLines(sink.logPath)).map((line) => JSON.parse(line) as AuditEvent);
  const numbers = events
    .filter(({ verb }) => verb === 'gap')
    .map(({ annotations = {} }) =>
      ['from', 'to', 'count'].map((key) => Number(annotations[`colonnade/gap-${key}`])),
    );
  return numbers.map(([from = 0, to = 0, count = 0]) => ({ from, to, count }));
}

test('what one replica gives up and what the other holds is everything, each once', async () => {
  await store('late', 2000);
  const waiting = async () => {
    const { num_pending, num_ack_pending } = await consumer();
    return num_pending + num_ack_pending;
  };
  // What the patient one holds is not the hasty one's to give up.
  await waitFor('little to wait', async () => (await waiting()) <= 400 + 2 * BATCH, LIMIT);
  await hasty.kill('SIGKILL');
  await store('meanwhile', 600);
  await hasty.restart();
  await waitFor('little to wait again', async () => (await waiting()) <= 400 + 2 * BATCH, LIMIT);
  const before = (await consumer()).delivered.consumer_seq;
  await store('quiet', 20);
  const measuredUntil = performance.now() + 5000;
  await waitFor('the time to be over', () => performance.now() > measuredUntil, LIMIT);
  const again = (await consumer()).delivered.consumer_seq - before;
  assert.ok(again < 1500, `${again} deliveries in 5 s while 20 records came: it turns in circles`);
  await webhook.start();
  await store('last', 10);
  await waitFor('nothing to wait', async () => (await waiting()) === 0, { limitMs: 60_000 });
  const found = (await gaps()).toSorted((a, b) => a.from - b.from);
  assert.ok(found.length > 0);
  for (const [i, gap] of found.entries()) {
    assert.equal(gap.count, gap.to - gap.from + 1);
    assert.ok(gap.from > (found[i - 1]?.to ?? 0), 'a record is given up twice');
  }
  const there = new Set(webhook.ids());
  const missed = [...seqs].filter(([, seq]) => found.some(({ from, to }) => seq >= from && seq <= to));
  const lost = [...seqs.keys()].filter((id) => !there.has(id) && !missed.some(([one]) => one === id));
  assert.deepEqual(lost, []);
  assert.ok(missed.length > 1500, `${missed.length} given up`);
  // Two that take turns at the stream give up ranges between each other's.
  assert.ok(found.length < missed.length / 4, `${found.length} gap records of ${missed.length}`);
  assert.ok(
    [...there].some((id) => id.startsWith('early-')),
    'the patient one gave up what it held',
  );
});
