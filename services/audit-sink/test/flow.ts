import assert from 'node:assert/strict';
import path from 'node:path';
import { verifyLog } from '@colonnade/audit-log';
import { type ServiceProcess, startService } from '@colonnade/embedded';
import { startWebhook, writeKubeconfig } from '../../../test/support/fake-webhook.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { eventOf, type PreparedSink, prepareSink, publish, readIds } from './support.ts';

/** 1 MB is the smallest file there is: with these events it is rotated after a few hundred of them. */
const PADDING = 'p'.repeat(3000);
const LIMIT = { limitMs: 30_000, everyMs: 200 };

/** Publishes without a pause until it is stopped; what the stream acknowledged is what counts. */
export function startFlow(sink: PreparedSink, prefix: string, atOnce = 8) {
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
  const stop = async () => {
    running = false;
    await Promise.all(workers);
    return acknowledged;
  };
  return {
    acknowledged,
    stop,
    /** Returns when so many more are acknowledged. */
    async more(count: number) {
      const before = acknowledged.length;
      await waitFor('some more', () => acknowledged.length > before + count, { limitMs: 30_000 });
    },
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

export type FlowSink = PreparedSink & {
  service: ServiceProcess;
  webhook: Awaited<ReturnType<typeof startWebhook>>;
  /**
   * Waits until every one of these stands in the file and has come to the webhook, and asserts that it stands there once, and that
   * the chain is whole.
   * @param putBack brings back what was taken away from the log, as often as there is more
   */
  expectAll(wanted: readonly string[], putBack?: () => Promise<void>): Promise<void>;
};

/** A sink of its own process that writes to a file and a webhook, rotates and compresses, on a real bus. */
export async function startFlowSink(changes: Record<string, string> = {}): Promise<FlowSink> {
  const stack = new AsyncDisposableStack();
  const sink = stack.use(
    await prepareSink({
      auditWebhook: true,
      maxAuditBytes: 256 * 1024 * 1024,
      maxFileBytes: 512 * 1024 * 1024,
    }),
  );
  const webhook = stack.use(await startWebhook());
  const env: Record<string, string> = {
    ...sink.env,
    AUDIT_LOG_MAXSIZE: '1',
    AUDIT_LOG_MAXBACKUP: '0',
    AUDIT_LOG_COMPRESS: 'true',
    AUDIT_ANCHOR_MS: '200',
    AUDIT_WEBHOOK_CONFIG_FILE: await writeKubeconfig(sink.dir, { server: webhook.url }),
    AUDIT_WEBHOOK_INITIAL_BACKOFF_MS: '50',
    AUDIT_WEBHOOK_BATCH_MAX_WAIT_MS: '200',
    AUDIT_WEBHOOK_BATCH_THROTTLE_QPS: '1000',
    ...changes,
  };
  const logFile = path.join(sink.dir, 'sink.log');
  const service = stack.use(
    await startService({ name: 'audit-sink', portVariable: 'OPS_PORT', logFile, env }),
  );
  const logPath = env.AUDIT_LOG_PATH ?? sink.logPath;
  return {
    ...{ ...sink, logPath, service, webhook },
    async expectAll(wanted, putBack = async () => {}) {
      const hasAll = (ids: readonly string[]) => {
        const there = new Set(ids);
        return wanted.every((id) => there.has(id));
      };
      const last = wanted.at(-1) as string;
      await waitFor(`${last} in the file`, async () => (await readIds(logPath)).includes(last), LIMIT);
      const ids = await waitFor(
        'all in the file',
        async () => {
          await putBack();
          const now = await readIds(logPath);
          return hasAll(now) ? now : undefined;
        },
        LIMIT,
      );
      assert.equal(new Set(ids).size, ids.length, 'a record stands in the file twice');
      await waitFor('all at the webhook', () => hasAll(webhook.ids()), LIMIT);
      const verified = await verifyLog(logPath, await sink.anchors());
      assert.equal(verified.fault, undefined);
      assert.equal(verified.lines, (await readIds(logPath)).length);
      assert.ok(verified.anchors > 0);
      assert.deepEqual(await sink.deadLetters(), []);
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
