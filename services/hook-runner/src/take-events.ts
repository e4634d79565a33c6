import type { Bus, Delivery, Verdict } from '@colonnade/bus';
import { type CloudEvent, type ConsumerDefinition, decode, LIMITS, zCloudEvent } from '@colonnade/contracts';
import type { Events } from './events.ts';
import { goneBy } from './generation/touch.ts';
import type { PlannedRun } from './plan-run.ts';
import type { Runner } from './runner.ts';
import type { MinionName } from './store/minion-name.ts';

/** A stream of events, and what its events are for. */
export type EventSource = {
  consumer: ConsumerDefinition;
  /** As `planRun`. */
  plan: (event: CloudEvent) => PlannedRun | undefined;
  /** @throws ColonnadeError when whoever published it on this subject may not have told such an event */
  check?: (event: CloudEvent, subject: string) => void;
  /** Told of a minion that is gone, when the hooks of that have ended. */
  noteGone?: (minion: MinionName) => void;
};

type Task = { index: number; planned: PlannedRun };

/** A message as it was read, once. */
export type Taken = {
  delivery: Delivery;
  /** Undefined: it cannot be read. */
  event: CloudEvent | undefined;
  /** Why it is not taken: it cannot be read, or its publisher may not tell it. */
  fault: unknown;
};

const DONE: Verdict = { kind: 'done' };
const LATER: Verdict = { kind: 'later', delayMs: 500 };
const WAIT_MS = 5000;

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
        const taken = batch.map((delivery) => readDelivery(delivery, from.check));
        const verdicts = await handleBatch(taken, from, runner, concurrency, events, stop.hooks);
        return taken.map((one, i) => {
          const verdict = verdicts[i] as Verdict;
          return verdict.kind === 'done' ? (noteGone(one, from) ?? verdict) : verdict;
        });
      },
      onFailure: events.failed,
    },
    stop.taking,
  );
}

/** Reads a message; never throws. */
export function readDelivery(delivery: Delivery, check: EventSource['check']): Taken {
  let event: CloudEvent | undefined;
  try {
    event = decode(zCloudEvent, delivery.payload);
    check?.(event, delivery.subject);
    return { delivery, event, fault: undefined };
  } catch (fault) {
    return { delivery, event, fault };
  }
}

async function handleBatch(
  batch: readonly Taken[],
  from: EventSource,
  runner: Runner,
  concurrency: number,
  events: Events,
  signal: AbortSignal,
): Promise<readonly Verdict[]> {
  const verdicts = batch.map((): Verdict => DONE);
  const bySubject = new Map<string, Task[]>();
  for (const [index, one] of batch.entries()) {
    const planned = plan(one, from, events, (verdict) => {
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
 * The hooks of a deletion are told of the minion's folder, which goes with the next generation: they come first.
 * @returns undefined: it is noted, or there is nothing to note
 */
function noteGone({ event }: Taken, { noteGone: note }: EventSource): Verdict | undefined {
  const gone = event === undefined ? undefined : goneBy(event);
  if (gone === undefined || note === undefined) return undefined;
  try {
    note({ master: gone.master, id: gone.id });
    return undefined;
  } catch (error) {
    return { kind: 'retry', error };
  }
}

/** An event that cannot be read can never be: it is left out, with an error in the log. */
function plan(
  { delivery, event, fault }: Taken,
  from: EventSource,
  events: Events,
  answer: (verdict: Verdict) => void,
): PlannedRun | undefined {
  try {
    if (event === undefined || fault !== undefined) throw fault;
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
