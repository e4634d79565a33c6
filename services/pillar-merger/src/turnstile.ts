import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { type Call, ColonnadeError, remainingMs } from '@colonnade/contracts';

/**
 * Work that can wait, one piece after the other, so that masters' merges come in between: after each piece the event loop
 * turns, and after a long one as much time is left to others as it took, its answer included.
 * @throws ColonnadeError `unavailable` when the caller's time is up before its turn comes, or what the work throws
 */
export type Turnstile = <T>(call: Call, work: () => Promise<T>) => Promise<T>;

/** A piece that took less is followed by no pause, milliseconds; and the longest pause. */
const SHORT_MS = 20;
const LONGEST_PAUSE_MS = 1000;

export function createTurnstile(): Turnstile {
  let free: Promise<void> = Promise.resolve();
  return (call, work) => {
    let startedMs: number | undefined;
    const mine = free.then(() => {
      if (remainingMs(call) < 1) throw new ColonnadeError('unavailable', 'the time budget is used up');
      startedMs = performance.now();
      return work();
    });
    const rest = () => leaveTime(startedMs);
    free = mine.then(rest, rest);
    return mine;
  };
}

async function leaveTime(startedMs: number | undefined): Promise<void> {
  await nextTurn();
  const tookMs = startedMs === undefined ? 0 : performance.now() - startedMs;
  if (tookMs > SHORT_MS) await sleep(Math.min(tookMs, LONGEST_PAUSE_MS));
}
