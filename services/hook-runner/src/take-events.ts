import type { Bus, Delivery, Verdict } from '@colonnade/bus';
import {
  type CloudEvent,
  type ConsumerDefinition,
  cloudEventType,
  decode,
  LIMITS,
  type Touched,
  zCloudEvent,
} from '@colonnade/contracts';
import type { Events } from './events.ts';
import { touchedBy } from './generation/touch.ts';
import type { PlannedRun } from './plan-run.ts';
import type { Runner } from './runner.ts';

/** A stream of events, and what its events are for. */
export type EventSource = {
  consumer: ConsumerDefinition;
  /** As `planRun`. */
  plan: (event: CloudEvent) => PlannedRun | undefined;
  /** @throws ColonnadeError when whoever published it on this subject may not have told such an event */
  check?: (event: CloudEvent, subject: string) => void;
  /** Whom an event touches is told here; absent: what stands there touches nobody. */
  note?: (touched: Touched) => void;
};

type Task = { index: number; planned: PlannedRun };

const DONE: Verdict = { kind: 'done' };
const LATER: Verdict = { kind: 'later', delayMs: 500 };
const WAIT_MS = 5000;
const DELETED = cloudEventType('minion.deleted');
const EVERYBODY: readonly Touched[] = [{ kind: 'all' }];

/**
 * Takes events from the stream and runs their hooks, until the signal. What is about one subject keeps its order; of the
 * rest, `concurrency` run at once. An event is acknowledged when its run is written down as ended.
 */
export function takeEvents(
  bus: Pick<Bus, 'consume'>,
  from: EventSource,
  runner: Runner,
  concurrency: number,
  events: Events,
  stop: { taking: AbortSignal; hooks: AbortSignal },
): Promise<void> {
  return bus.consume(
    from.consumer,
    {
      pull: () => ({
        maxMessages: 2 * concurrency,
        maxBytes: 2 * concurrency * LIMITS.natsPayloadBytes,
        waitMs: WAIT_MS,
        fillMs: 0,
      }),
      confirm: false,
      handle: async (batch) => {
        // A hook that hangs holds up no generation.
        const faults = batch.map((delivery) =>
          isDeletion(delivery) ? undefined : noteTouched(delivery, from),
        );
        const verdicts = await handleBatch(batch, from, runner, concurrency, events, stop.hooks);
        return batch.map((delivery, i) => {
          const verdict = verdicts[i] as Verdict;
          if (verdict.kind !== 'done' && verdict.kind !== 'poison') return verdict;
          return faults[i] ?? (isDeletion(delivery) ? noteTouched(delivery, from) : undefined) ?? verdict;
        });
      },
      onFailure: events.failed,
    },
    stop.taking,
  );
}

async function handleBatch(
  batch: readonly Delivery[],
  from: EventSource,
  runner: Runner,
  concurrency: number,
  events: Events,
  signal: AbortSignal,
): Promise<readonly Verdict[]> {
  const verdicts = batch.map((): Verdict => DONE);
  const bySubject = new Map<string, Task[]>();
  for (const [index, delivery] of batch.entries()) {
    const planned = plan(delivery, from, events, (verdict) => {
      verdicts[index] = verdict;
    });
    if (planned === undefined) continue;
    const queue = bySubject.get(planned.subject) ?? [];
    bySubject.set(planned.subject, [...queue, { index, planned }]);
  }
  const queues = [...bySubject.values()];
  const work = async () => {
    for (let queue = queues.shift(); queue !== undefined; queue = queues.shift()) {
      await runQueue(queue, verdicts, runner, events, signal);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return verdicts;
}

/**
 * Whom it touches is noted before it is acknowledged, an event that no hooks can be run for too. Twice does no harm.
 * @returns undefined: it is noted
 */
function noteTouched(delivery: Delivery, from: EventSource): Verdict | undefined {
  const { note } = from;
  if (note === undefined) return undefined;
  try {
    for (const touched of touchedOf(delivery, from)) note(touched);
    return undefined;
  } catch (error) {
    return { kind: 'retry', error };
  }
}

/** An event that its publisher may not have told touches nobody; one that cannot be read may have been about anybody. */
function touchedOf(delivery: Delivery, { check }: EventSource): readonly Touched[] {
  const event = readEvent(delivery);
  if (event === undefined) return EVERYBODY;
  try {
    check?.(event, delivery.subject);
  } catch {
    return [];
  }
  return touchedBy(event);
}

/** The hooks of a deletion are told of the minion's folder, which goes with the next generation: they come first. */
function isDeletion(delivery: Delivery): boolean {
  return readEvent(delivery)?.type === DELETED;
}

/** @returns undefined: it cannot be read */
function readEvent({ payload }: Delivery): CloudEvent | undefined {
  try {
    return decode(zCloudEvent, payload);
  } catch {
    return undefined;
  }
}

/** An event that cannot be read can never be: it is left out, with an error in the log. */
function plan(
  delivery: Delivery,
  from: EventSource,
  events: Events,
  answer: (verdict: Verdict) => void,
): PlannedRun | undefined {
  try {
    const event = decode(zCloudEvent, delivery.payload);
    from.check?.(event, delivery.subject);
    return from.plan(event);
  } catch (error) {
    answer({ kind: 'poison', bury: async () => events.unreadable(delivery.seq, error) });
    return undefined;
  }
}

/** An event that has to come again holds up those about the same subject that came with it. */
async function runQueue(
  queue: readonly Task[],
  verdicts: Verdict[],
  runner: Runner,
  events: Events,
  signal: AbortSignal,
): Promise<void> {
  let failed = false;
  for (const { index, planned } of queue) {
    if (failed || signal.aborted) {
      verdicts[index] = LATER;
      continue;
    }
    try {
      if (runner.ended(planned.id) !== undefined) {
        events.taken('known');
        continue;
      }
      const { results } = await runner.run(planned, false, signal);
      events.taken(results.length === 0 ? 'no hooks' : 'run');
    } catch (error) {
      failed = true;
      verdicts[index] = { kind: 'retry', error };
    }
  }
}
