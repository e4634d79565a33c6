import { setTimeout as delay } from 'node:timers/promises';

const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 64;

/**
 * Waits before the attempt that follows `attempt` (from 0): longer each time, and by chance, so that rivals come apart.
 * @param deadlineMs by the clock of `performance.now()`
 * @returns false, at once, when there is no time for another attempt
 */
export async function pauseBefore(attempt: number, deadlineMs: number): Promise<boolean> {
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS) * (0.5 + Math.random());
  if (performance.now() + pauseMs >= deadlineMs) return false;
  await delay(pauseMs);
  return true;
}
