import type { Bus, Verdict } from '@colonnade/bus';
import { LIMITS, type Touched, touchesConsumer } from '@colonnade/contracts';
import type { Events } from './events.ts';
import { EVERYBODY, touchedBy } from './generation/touch.ts';
import { type EventSource, readDelivery, type Taken } from './take-events.ts';

const DONE: Verdict = { kind: 'done' };
const AT_ONCE = 64;
const WAIT_MS = 5000;

/**
 * Notes whom events touch, until the signal: beside their hooks, which may take their time. What is noted twice does no harm, so it is
 * acknowledged when it is noted. A batch is noted at once: those of an import touch thousands.
 */
export function takeTouches(
  bus: Pick<Bus, 'consume'>,
  check: EventSource['check'],
  note: (touched: readonly Touched[]) => void,
  events: Pick<Events, 'failed'>,
  signal: AbortSignal,
): Promise<void> {
  const noteAll = (batch: readonly Taken[]): Verdict => {
    try {
      const touched = batch.flatMap(touchedOf);
      if (touched.length > 0) note(touched);
      return DONE;
    } catch (error) {
      return { kind: 'retry', error };
    }
  };
  const pull = { maxMessages: AT_ONCE, maxBytes: 8 * LIMITS.natsPayloadBytes, waitMs: WAIT_MS, fillMs: 0 };
  return bus.consume(
    touchesConsumer,
    {
      pull: () => pull,
      confirm: false,
      handle: async (batch) => {
        const verdict = noteAll(batch.map((delivery) => readDelivery(delivery, check)));
        return batch.map(() => verdict);
      },
      onFailure: events.failed,
    },
    signal,
  );
}

/** An event that its publisher may not have told touches nobody; one that cannot be read may have been about anybody. */
function touchedOf({ event, fault }: Taken): readonly Touched[] {
  if (event === undefined) return EVERYBODY;
  return fault === undefined ? touchedBy(event) : [];
}
