import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, ColonnadeError, remainingMs, toColonnadeError } from '@colonnade/contracts';

/** Audit records of answers that do not wait for their record. */
export type RecordQueue = AsyncDisposable & {
  /**
   * Takes a record over. With the buffer full it waits for room as long as the caller waits for its answer.
   * @param publish tries until the stream has the record; its throw says that no try will store it
   * @throws ColonnadeError `overloaded`: the record is not taken, so no result may be given
   */
  add(publish: () => Promise<void>, call: Call): Promise<void>;
};

export type QueueWatcher = {
  /** Records taken and not yet acknowledged. */
  recordsPending(count: number): void;
  /** Records given up because the process has to end. */
  recordsLost(count: number): void;
  /** A record that no further try will store: it cannot be encoded, or is none of ours. */
  recordUnstorable(error: ColonnadeError): void;
};

const PUBLISHERS = 32;
/** What is left of the ten seconds a stopping process has is for others. */
const FLUSH_MS = 4000;

/**
 * A bounded buffer with a few publishers, each of which waits until the stream has acknowledged its record: a bus that is away
 * fills the buffer, and then requests fail instead of going unrecorded. Trying again is packages/audit's own business.
 * @param limit records held at once
 * @param flushMs how long disposing waits for what is left
 */
export function createRecordQueue(limit: number, watcher: QueueWatcher, flushMs = FLUSH_MS): RecordQueue {
  const jobs: (() => Promise<void>)[] = [];
  const waiting: (() => void)[] = [];
  const stopped = new AbortController();
  let busy = 0;

  const work = async () => {
    busy += 1;
    for (let job = jobs.shift(); job !== undefined && !stopped.signal.aborted; job = jobs.shift()) {
      await job().catch((thrown: unknown) => watcher.recordUnstorable(toColonnadeError(thrown)));
      waiting.shift()?.();
      watcher.recordsPending(jobs.length + busy - 1);
    }
    busy -= 1;
  };

  return {
    async add(publish, call) {
      while (jobs.length >= limit) await waitForRoom(waiting, call);
      jobs.push(publish);
      if (busy < PUBLISHERS) void work();
      watcher.recordsPending(jobs.length + busy);
    },
    async [Symbol.asyncDispose]() {
      const untilMs = performance.now() + flushMs;
      while (jobs.length + busy > 0 && performance.now() < untilMs) await sleep(10);
      const lost = jobs.length + busy;
      stopped.abort();
      if (lost > 0) watcher.recordsLost(lost);
    },
  };
}

async function waitForRoom(waiting: (() => void)[], call: Call): Promise<void> {
  const room = Promise.withResolvers<void>();
  waiting.push(room.resolve);
  const timer = setTimeout(() => {
    const at = waiting.indexOf(room.resolve);
    // Already woken: the room found is this caller's, and nobody else's to lose.
    if (at < 0) return;
    waiting.splice(at, 1);
    room.reject(new ColonnadeError('overloaded', 'the KMS cannot put its answers on record fast enough'));
  }, remainingMs(call));
  await room.promise.finally(() => clearTimeout(timer));
}
