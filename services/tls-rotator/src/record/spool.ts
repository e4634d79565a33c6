import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import { backoffMs } from '../rules/backoff.ts';

export type SpoolItem = { subject: string; msgId: string; payload: Uint8Array };

export type SpoolWatcher = {
  /** Messages that NATS has not taken yet. */
  pending(count: number): void;
  /** Given up, because there are too many or the disk has no room. */
  lost(count: number, error?: unknown): void;
  publishFailed(error: ColonnadeError): void;
};

/** Messages for NATS that outlive NATS, and us: on disk before `put` returns, gone from there once stored. */
export type Spool = AsyncDisposable & {
  /** Never throws: a rotation does not stop because nobody can be told of it. */
  put(items: readonly SpoolItem[]): Promise<void>;
};

type Batch = { file: string | undefined; items: readonly SpoolItem[] };
const MAX_PENDING = 50_000;
const FLUSH_MS = 2000;

/**
 * @param publish resolves once the stream has acknowledged the message; called in order, again after a failure
 * @throws what the file system throws when the folder cannot be made
 */
export async function openSpool(
  dir: string,
  publish: (item: SpoolItem) => Promise<void>,
  watcher: SpoolWatcher,
): Promise<Spool> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const batches: Batch[] = await readBatches(dir);
  const stopped = new AbortController();
  let pending = batches.reduce((sum, { items }) => sum + items.length, 0);
  let sequence = Date.now() * 1000;
  let wake = Promise.withResolvers<void>();
  watcher.pending(pending);

  const count = (change: number) => {
    pending += change;
    watcher.pending(pending);
  };
  const drain = async () => {
    for (let failures = 0; !stopped.signal.aborted; ) {
      const [batch] = batches;
      if (batch === undefined) {
        await wake.promise;
        wake = Promise.withResolvers<void>();
        continue;
      }
      try {
        for (const item of batch.items) await publish(item);
        if (batch.file !== undefined) await rm(batch.file, { force: true });
        batches.shift();
        count(-batch.items.length);
        failures = 0;
      } catch (thrown) {
        failures += 1;
        watcher.publishFailed(toColonnadeError(thrown));
        const pause = backoffMs(failures, { firstMs: 250, maxMs: 10_000 });
        await sleep(pause, undefined, { signal: stopped.signal }).catch(() => undefined);
      }
    }
  };
  const drained = drain();
  return {
    async put(items) {
      if (items.length === 0) return;
      if (pending + items.length > MAX_PENDING) return watcher.lost(items.length);
      sequence = Math.max(sequence + 1, Date.now() * 1000);
      const file = path.join(dir, `${sequence}-${randomUUID().slice(0, 8)}.json`);
      // Without room on the disk it is kept in memory at least.
      const kept = await writeBatch(file, items).then(
        () => file,
        (thrown: unknown) => watcher.lost(0, thrown) as undefined,
      );
      batches.push({ file: kept, items });
      count(items.length);
      wake.resolve();
    },
    async [Symbol.asyncDispose]() {
      const untilMs = performance.now() + FLUSH_MS;
      while (pending > 0 && performance.now() < untilMs) await sleep(20);
      stopped.abort();
      wake.resolve();
      await drained;
    },
  };
}

/** Whole or not at all, and there after a power cut. */
async function writeBatch(file: string, items: readonly SpoolItem[]): Promise<void> {
  const draft = `${file}.draft`;
  const rows = items.map(({ subject, msgId, payload }) => ({
    subject,
    msgId,
    payload: Buffer.from(payload).toString('base64'),
  }));
  await using handle = await open(draft, 'w', 0o600);
  await handle.writeFile(JSON.stringify(rows));
  await handle.sync();
  await rename(draft, file);
  await using folder = await open(path.dirname(file), 'r');
  await folder.sync();
}

/** What an earlier process has left, oldest first. A file that cannot be read is left where it is. */
async function readBatches(dir: string): Promise<Batch[]> {
  const names = (await readdir(dir)).sort();
  await Promise.all(
    names.filter((n) => n.endsWith('.draft')).map((n) => rm(path.join(dir, n), { force: true })),
  );
  const batches: Batch[] = [];
  for (const name of names.filter((n) => /^\d+-[0-9a-f]+\.json$/u.test(n))) {
    const file = path.join(dir, name);
    try {
      const rows = JSON.parse(await readFile(file, 'utf8')) as {
        subject: string;
        msgId: string;
        payload: string;
      }[];
      batches.push({
        file,
        items: rows.map((row) => ({ ...row, payload: Buffer.from(row.payload, 'base64') })),
      });
    } catch {
      // Not ours, or from another version: a person may want to see it.
    }
  }
  return batches;
}
