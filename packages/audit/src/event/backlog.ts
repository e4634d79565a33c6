import { setTimeout as sleep } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';
import type { AuditRecorder } from './auditor.ts';
import { type Batch, createBatcher } from './batcher.ts';
import type { AuditWatch } from './watch.ts';

/** Records that nobody waits for. They are tried until the stream has them, or there is no room for more. */
export type Backlog = AsyncDisposable & {
  /**
   * Takes a record over; one for which there is no room is given up, and counted.
   * @param triedAs the message id under which it was sent before: then it goes alone and under that id, since the stream
   *   may have it
   */
  add(event: Uint8Array, triedAs?: string): void;
};

export type BacklogOptions = {
  auditor: Pick<AuditRecorder, 'publishBatch'>;
  watch: AuditWatch;
  maxRecords?: number;
  maxBytes?: number;
  /** How long disposing waits for what is left, milliseconds. */
  flushMs?: number;
};

const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 2000;

export function createBacklog(options: BacklogOptions): Backlog {
  const { auditor, watch, maxRecords = 10_000, maxBytes = 64 * 1024 * 1024, flushMs = 4000 } = options;
  const stopped = new AbortController();
  const batcher = createBatcher({ send: (batch) => sendUntilStored(auditor, batch, stopped.signal) });
  let records = 0;
  let bytes = 0;
  const left = (event: Uint8Array) => {
    records -= 1;
    bytes -= event.length;
    watch.waiting({ count: records });
  };
  return {
    add(event, triedAs) {
      if (stopped.signal.aborted || records >= maxRecords || bytes + event.length > maxBytes) {
        watch.dropped({ count: 1 });
        return;
      }
      records += 1;
      bytes += event.length;
      watch.waiting({ count: records });
      const alone = (msgId: string) =>
        sendUntilStored(auditor, { msgId, payload: event, count: 1 }, stopped.signal, 1);
      void (triedAs === undefined ? batcher.add(event) : alone(triedAs))
        .catch(() => watch.dropped({ count: 1 }))
        .finally(() => left(event));
    },
    async [Symbol.asyncDispose]() {
      const untilMs = performance.now() + flushMs;
      while (records > 0 && performance.now() < untilMs) await sleep(10);
      stopped.abort();
    },
  };
}

/**
 * Tries a batch until the stream has it, or the signal says that it is too late. Waiting keeps no process alive.
 * @throws ColonnadeError for a batch that no try will store, or the last error when it is too late
 */
export async function sendUntilStored(
  auditor: Pick<AuditRecorder, 'publishBatch'>,
  batch: Batch,
  stop?: AbortSignal,
  triesBefore = 0,
): Promise<void> {
  for (let tries = triesBefore; ; tries += 1) {
    try {
      // A try whose acknowledgement was lost is stored: the stream then knows the message id.
      return await auditor.publishBatch(batch, { isRetry: tries > 0 });
    } catch (thrown) {
      if (stop?.aborted || (thrown instanceof ColonnadeError && !thrown.retryable)) throw thrown;
      const delayMs = Math.min(RETRY_MIN_MS * 2 ** tries, RETRY_MAX_MS);
      const options = { ref: stop !== undefined, ...(stop === undefined ? {} : { signal: stop }) };
      await sleep(delayMs, undefined, options).catch(() => undefined);
    }
  }
}
