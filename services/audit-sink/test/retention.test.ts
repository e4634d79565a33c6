import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { AUDIT_STREAM, type AuditEvent } from '@colonnade/contracts';
import { startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import {
  eventOf,
  type PreparedSink,
  prepareSink,
  publish,
  publishMany,
  readIds,
  readLines,
} from './support.ts';

const FAST = {
  AUDIT_WEBHOOK_INITIAL_BACKOFF_MS: '20',
  AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '50',
  AUDIT_WEBHOOK_BATCH_THROTTLE_QPS: '1000',
};
const LIMIT = { limitMs: 30_000 };

async function gapsIn(logPath: string): Promise<{ from: number; to: number; count: number }[]> {
  const events = (await readLines(logPath)).map((line) => JSON.parse(line) as AuditEvent);
  return events
    .filter((e) => e.verb === 'gap')
    .map(({ annotations = {} }) => ({
      from: Number(annotations['colonnade/gap-from']),
      to: Number(annotations['colonnade/gap-to']),
      count: Number(annotations['colonnade/gap-count']),
    }));
}

describe('a webhook that stays dead', () => {
  const open: AsyncDisposable[] = [];
  after(async () => {
    for (const one of open.reverse()) await one[Symbol.asyncDispose]();
  });
  const prepare = async (options: Parameters<typeof prepareSink>[0]) => {
    const sink: PreparedSink = await prepareSink({ auditWebhook: true, ...options });
    const webhook = await startWebhook();
    open.push(sink, webhook);
    await webhook.stop();
    const kubeconfig = await writeKubeconfig(sink.dir, { server: webhook.url });
    const start = (changes: Record<string, string>) =>
      sink.start({ ...FAST, AUDIT_WEBHOOK_CONFIG_FILE: kubeconfig, ...changes });
    return { sink, webhook, start };
  };

  test('is skipped ahead at its limit, on record; what it misses and what it gets is everything', async () => {
    const { sink, webhook, start } = await prepare({});
    await using running = await start({ AUDIT_WEBHOOK_MAX_BACKLOG: '400' });
    const seqs = new Map<string, number>();
    for (let i = 0; i < 1000; i += 1)
      seqs.set(`event-${i}`, await publish(sink.publisher, eventOf(`event-${i}`)));
    const skippedSoFar = async () => (await gapsIn(sink.logPath)).reduce((sum, { count }) => sum + count, 0);
    await waitFor('less than the limit to wait', async () => (await skippedSoFar()) >= 600, LIMIT);
    const metrics = await (await fetch(`${running.url}/metrics`)).text();
    assert.match(metrics, /audit_sink_dropped_total\{backend="webhook",reason="backlog_limit"[^}]*\} \d+/u);
    assert.ok(sink.logLines.some((line) => line.includes('the backlog is near its limit')));
    await webhook.start();
    await waitFor('the newest', () => webhook.ids().includes('event-999'), LIMIT);
    // A record of a gap may itself be skipped, when the webhook stays dead for longer: then another one covers it.
    await waitFor(
      'a gap record at the webhook',
      () => webhook.ids().some((id) => id.startsWith('gap-')),
      LIMIT,
    );
    const { gaps, skipped } = await waitFor(
      'everything, there or on record',
      async () => {
        const now = await gapsIn(sink.logPath);
        const missed = [...seqs].filter(([, seq]) => now.some(({ from, to }) => seq >= from && seq <= to));
        const known = new Set([...webhook.ids(), ...missed.map(([id]) => id)]);
        return [...seqs.keys()].every((id) => known.has(id)) ? { gaps: now, skipped: missed } : undefined;
      },
      LIMIT,
    );
    assert.ok(gaps.every(({ from, to, count }) => count === to - from + 1));
    assert.ok(skipped.length >= 600, `${skipped.length} skipped`);
    assert.equal((await readIds(sink.logPath)).filter((id) => id.startsWith('event-')).length, 1000);
  });

  test('is skipped also while it holds a request and says nothing', async () => {
    const { sink, webhook, start } = await prepare({});
    await webhook.start();
    let asked = 0;
    webhook.behave(() => {
      asked += 1;
      return new Promise(() => {});
    });
    await using _running = await start({ AUDIT_WEBHOOK_MAX_BACKLOG: '200' });
    await publishMany(sink.publisher, 'held', 100);
    await waitFor('a request', () => asked > 0, LIMIT);
    await publishMany(sink.publisher, 'more', 300);
    // Half of the time it gives a request.
    await waitFor('a gap record', async () => (await gapsIn(sink.logPath)).length > 0, { limitMs: 15_000 });
    await webhook.stop();
  });

  test('never blocks a write: the stream has room, and the file has everything', async () => {
    const { sink, start } = await prepare({ maxAuditBytes: 4 * 1024 * 1024 });
    await using running = await start({ AUDIT_WEBHOOK_MAX_STREAM_PERCENT: '50' });
    const wanted: string[] = [];
    for (let i = 0; i < 40; i += 1) {
      wanted.push(...(await publishMany(sink.publisher, `part-${i}`, 100, 'x'.repeat(2500))));
      // A backlog that grows faster than it is looked at is what space is kept free for.
      await waitFor('room', async () => (await fill(sink)) < 0.6, LIMIT);
    }
    assert.equal((await fetch(`${running.url}/readyz`)).status, 200);
    const there = await waitFor('the file', async () => {
      const ids = new Set(await readIds(sink.logPath));
      return wanted.every((id) => ids.has(id)) ? ids : undefined;
    });
    assert.ok(there.size >= 4000);
    assert.ok((await gapsIn(sink.logPath)).length > 0);
  });
});

async function fill(sink: PreparedSink): Promise<number> {
  const witness = await sink.bus.witness();
  const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
  await witness.close();
  const { state, config } = info.json<{ state: { bytes: number }; config: { max_bytes: number } }>();
  return state.bytes / config.max_bytes;
}
