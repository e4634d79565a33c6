import type { EventFilter, FileNames } from '@colonnade/audit-log';
import { type Bus, type Delivery, DONE, type Verdict } from '@colonnade/bus';
import { auditFileConsumer } from '@colonnade/contracts';
import type { Bury } from '../dead-letters.ts';
import type { Events } from '../events.ts';
import type { LogFormat } from './format.ts';
import { findOtherNumbering, timesIn } from './numbering.ts';
import { gapEntry } from './open-log.ts';
import type { Persister } from './persister.ts';
import { type Hole, lostOf, type Plan, planBatch } from './plan.ts';
import { createSeenIds } from './seen-ids.ts';
import type { Writer } from './writer.ts';

export type BatchTakerOptions = {
  format: LogFormat;
  filter?: EventFilter | undefined;
  /** Records up to this sequence may be missing: an operator has looked at it. */
  acceptGapTo: number;
};

type Deps = {
  bus: Pick<Bus, 'consumerState'>;
  names: FileNames;
  bury: Bury;
  persister: Persister;
  events: Events;
};

const NAME = 'file';
const HOLE_RETRY_MS = 250;
/** What a dead writer had taken comes again after the consumer's wait; a hole that stays longer is a loss. */
const HOLE_PATIENCE_MS = 4 * auditFileConsumer.ackWaitMs;

/** Makes the function that brings one batch into the log and gives each message its verdict. */
export function createBatchTaker(options: BatchTakerOptions, deps: Deps) {
  const { bus, bury, persister, events } = deps;
  const seen = createSeenIds();
  let open: (Hole & { sinceMs: number }) | undefined;
  return async (
    writer: Writer,
    batch: readonly Delivery[],
    signal: AbortSignal,
  ): Promise<readonly Verdict[]> => {
    await startOverIfNumberedAnew(writer, batch, options, deps, signal);
    const plan = planBatch(batch, writer.place(), { ...options, seen });
    await buryPoison(plan, bury, writer.place().stream);
    if (plan.entries.length > 0) await persister.persist(() => writer.append(plan.entries), signal);
    report(events, batch, plan);
    if (plan.hole === undefined) {
      open = undefined;
      persister.refuse(undefined);
      return batch.map(() => DONE);
    }
    const { from } = plan.hole;
    if (open?.from !== from) open = { ...plan.hole, sinceMs: performance.now() };
    // Each that comes may be the first after the hole.
    open.to = Math.min(open.to, plan.hole.to);
    const late = performance.now() - open.sinceMs > HOLE_PATIENCE_MS;
    const lost = lostOf(open, await bus.consumerState(auditFileConsumer)) ?? (late ? open : undefined);
    if (lost !== undefined) {
      if (lost.to > options.acceptGapTo) persister.refuse(lost);
      else await acceptGap(writer, lost, options, deps, signal);
    }
    const later: Verdict = { kind: 'later', delayMs: HOLE_RETRY_MS };
    return batch.map(({ seq }) => (seq >= from ? later : DONE));
  };
}

async function buryPoison(plan: Plan, bury: Bury, stream: string): Promise<void> {
  // Before the journal says that they are dealt with: afterwards nobody would look at them again.
  for (const { delivery, index, ...why } of plan.poison) await bury(delivery, { ...why, stream, index });
}

async function startOverIfNumberedAnew(
  writer: Writer,
  batch: readonly Delivery[],
  { format }: BatchTakerOptions,
  { names, persister, events }: Deps,
  signal: AbortSignal,
): Promise<void> {
  const place = writer.place();
  const first = await findOtherNumbering(batch, place, timesIn(names));
  if (first === undefined) return;
  const at = { stream: place.stream, seq: first.seq - 1, storedAtNs: first.storedAtNs - 1n };
  const gap = { reason: 'stream_went_back', from: first.seq, to: place.seq, count: 0 } as const;
  await persister.persist(async () => {
    if (writer.place().seq !== at.seq) await writer.startOver(at);
    await writer.append([gapEntry(gap, at, format)]);
  }, signal);
  events.gapWritten({ backend: NAME, ...gap });
}

async function acceptGap(
  writer: Writer,
  { from, to }: Hole,
  { format }: BatchTakerOptions,
  { persister, events }: Deps,
  signal: AbortSignal,
): Promise<void> {
  const gap = { reason: 'lost_from_stream', from, to, count: to - from + 1 } as const;
  const entry = gapEntry(gap, { ...writer.place(), seq: to }, format);
  await persister.persist(() => writer.append([entry]), signal);
  events.gapWritten({ backend: NAME, ...gap });
}

function report(events: Events, batch: readonly Delivery[], { counts, poison }: Plan): void {
  events.counted(NAME, 'taken', counts.taken);
  events.counted(NAME, 'again', counts.again);
  events.counted(NAME, 'filtered', counts.filtered);
  const [oldest] = batch;
  if (oldest === undefined || counts.taken + poison.length === 0) return;
  events.batchTaken(NAME, batch.length, Date.now() - Number(oldest.storedAtNs / 1_000_000n));
}
