import { applyFilter, type EventFilter, readMessage } from '@colonnade/audit-log';
import type { ConsumerState, Delivery } from '@colonnade/bus';
import type { DeadLetterReason } from '@colonnade/contracts';
import type { Entry } from './chunk.ts';
import { type LogFormat, lineOf } from './format.ts';
import type { Place } from './recover.ts';
import type { SeenIds } from './seen-ids.ts';

/** Sequences that have not come, both ends included. */
export type Hole = { from: number; to: number };

/** What is to be done with one batch. Pure. */
export type Plan = {
  entries: Entry[];
  poison: { delivery: Delivery; reason: DeadLetterReason; detail: string; index: number }[];
  /** Sequences that should have come before the rest of the batch; the rest is not in the plan. */
  hole: Hole | undefined;
  counts: { taken: number; again: number; filtered: number };
};

export type PlanOptions = { format: LogFormat; filter?: EventFilter | undefined; seen?: SeenIds };

/**
 * Goes through a batch in the order of the stream: skips what the file has, under the same or another sequence, turns events into lines, sets aside what is no event,
 * and stops at a hole.
 */
export function planBatch(batch: readonly Delivery[], place: Pick<Place, 'seq'>, options: PlanOptions): Plan {
  const plan: Plan = {
    entries: [],
    poison: [],
    hole: undefined,
    counts: { taken: 0, again: 0, filtered: 0 },
  };
  let at = place.seq;
  for (const delivery of batch) {
    const { seq } = delivery;
    if (seq <= at) {
      plan.counts.again += 1;
      continue;
    }
    if (seq > at + 1) {
      plan.hole = { from: at + 1, to: seq - 1 };
      break;
    }
    if (options.seen?.isRepeated(delivery) === true) {
      plan.counts.again += 1;
      plan.entries.push({ kind: 's', seq, storedAtNs: delivery.storedAtNs, lines: [] });
    } else plan.entries.push(entryOf(delivery, options, plan));
    at = seq;
  }
  return plan;
}

function entryOf(delivery: Delivery, { format, filter }: PlanOptions, plan: Plan): Entry {
  const { seq, storedAtNs, payload } = delivery;
  const lines: Uint8Array[] = [];
  for (const [index, read] of readMessage(payload).entries()) {
    if (!read.ok) {
      const { reason, detail, bytes } = read;
      plan.poison.push({ delivery: { ...delivery, payload: bytes }, reason, detail, index });
      continue;
    }
    const taken = applyFilter(read, filter);
    if (taken === undefined) plan.counts.filtered += 1;
    else lines.push(lineOf(format, taken.bytes, taken.text, taken.event));
  }
  plan.counts.taken += lines.length;
  return { kind: lines.length > 0 ? 'e' : 's', seq, storedAtNs, lines };
}

/** An old number with a newer time: the stream has lost its end, or was made anew, and numbers anew. */
export function findNewNumbering(batch: readonly Delivery[], place: Place): Delivery | undefined {
  return batch.find(({ seq, storedAtNs }) => seq <= place.seq && storedAtNs > place.storedAtNs);
}

/**
 * What of a hole the stream will never bring: it is acknowledged already, or gone. Messages that come again come in any order, so
 * the hole before one of them may be wider than what is lost.
 * @param hole as wide as what has come so far leaves it
 * @returns undefined while all of it may still come
 */
export function lostOf(hole: Hole, { ackedSeq, stream }: ConsumerState): Hole | undefined {
  const gone = Math.max(ackedSeq, stream.firstSeq - 1);
  return gone < hole.from ? undefined : { from: hole.from, to: Math.min(hole.to, gone) };
}
