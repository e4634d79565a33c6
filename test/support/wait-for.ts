import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';

export type WaitOptions = {
  /** How long to go on, in milliseconds. */
  limitMs?: number;
  /** The pause between two looks, in milliseconds. */
  everyMs?: number;
};

/**
 * Looks again and again until `condition` gives something truthy, and returns that. A throw counts as "not yet".
 * @throws Error that says what was waited for, for how long, and what the last look gave
 */
export async function waitFor<T>(
  what: string,
  condition: () => T | Promise<T>,
  { limitMs = 10_000, everyMs = 25 }: WaitOptions = {},
): Promise<NonNullable<T>> {
  const deadline = Date.now() + limitMs;
  let last = 'nothing';
  let cause: unknown;
  do {
    try {
      const result = await condition();
      if (result) return result;
      last = inspect(result, { depth: 3 });
      cause = undefined;
    } catch (error) {
      last = error instanceof Error ? `${error.name}: ${error.message}` : inspect(error);
      cause = error;
    }
    await delay(everyMs);
  } while (Date.now() < deadline);
  throw new Error(`waited ${limitMs} ms for ${what}; the last look gave ${last}`, { cause });
}
