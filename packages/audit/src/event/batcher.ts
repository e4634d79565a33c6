import { randomUUID } from 'node:crypto';
import { LIMITS } from '@colonnade/contracts';

/** Sends records together. Resolves when the stream has them, and rejects when it is not known to. */
export type Batcher = {
  /** @param event the bytes of one Event */
  add(event: Uint8Array): Promise<void>;
};

export type Batch = { msgId: string; payload: Uint8Array; count: number };

export type BatcherOptions = {
  send: (batch: Batch) => Promise<void>;
  maxRecords?: number;
  maxBytes?: number;
  /** Batches on their way at once. */
  maxInFlight?: number;
  /**
   * Where nobody waits: how long the first of a batch waits for others, milliseconds, and how many are enough to leave
   * sooner. 0: a record never waits for a timer.
   */
  lingerMs?: number;
  enough?: number;
};

type Waiting = { event: Uint8Array; resolve: () => void; reject: (thrown: unknown) => void };

const HEAD = Buffer.from('{"apiVersion":"audit.k8s.io/v1","items":[');
const TAIL = Buffer.from('],"kind":"EventList","metadata":{}}');
const COMMA = Buffer.from(',');

/**
 * Commits in groups: a record that finds the line free leaves at once and alone; those that come while others are on
 * their way leave together as one EventList, with one acknowledgement. So nobody waits for a timer, and under load
 * the stream writes once for hundreds of records.
 */
export function createBatcher(options: BatcherOptions): Batcher {
  const { send, maxRecords = 500, maxBytes = LIMITS.natsPayloadBytes, maxInFlight = 2 } = options;
  const { lingerMs = 0, enough = maxRecords } = options;
  let queue: Waiting[] = [];
  let inFlight = 0;
  let timer: NodeJS.Timeout | undefined;

  const dispatch = async () => {
    const batch = takeBatch(queue, maxRecords, maxBytes - HEAD.length - TAIL.length);
    queue = queue.slice(batch.length);
    inFlight += 1;
    try {
      const payload = joinEvents(batch.map(({ event }) => event));
      await send({ msgId: randomUUID(), payload, count: batch.length });
      for (const { resolve } of batch) resolve();
    } catch (thrown) {
      for (const { reject } of batch) reject(thrown);
    } finally {
      inFlight -= 1;
      if (queue.length > 0) leave();
    }
  };
  const leave = (): void => {
    if (inFlight >= maxInFlight) return;
    if (lingerMs > 0 && queue.length < enough) {
      timer ??= setTimeout(() => {
        timer = undefined;
        if (queue.length > 0 && inFlight < maxInFlight) void dispatch();
      }, lingerMs);
      return;
    }
    clearTimeout(timer);
    timer = undefined;
    void dispatch();
  };

  return {
    add(event) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      queue.push({ event, resolve, reject });
      leave();
      return promise;
    },
  };
}

function takeBatch(queue: readonly Waiting[], maxRecords: number, maxBytes: number): Waiting[] {
  const batch: Waiting[] = [];
  let bytes = 0;
  for (const one of queue) {
    bytes += one.event.length + 1;
    if (batch.length > 0 && (batch.length === maxRecords || bytes > maxBytes)) break;
    batch.push(one);
  }
  return batch;
}

/** One event as it is, several as an EventList: canonical, since its parts are. */
function joinEvents(events: readonly Uint8Array[]): Uint8Array {
  const [first] = events;
  if (first !== undefined && events.length === 1) return first;
  const parts = events.flatMap((event, index) => (index === 0 ? [event] : [COMMA, event]));
  return Buffer.concat([HEAD, ...parts, TAIL]);
}
