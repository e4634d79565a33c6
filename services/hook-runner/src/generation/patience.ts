/** How long the next generation waits: at most, and at least, however many changes come meanwhile. Milliseconds. */
export type Pause = { atMostMs: number; atLeastMs: number; failures: number };
export type Patience = {
  /** @param why two failures for the same reason are told by it, and the second waits longer */
  failed(why: string, initialMs: number): Pause;
  forget(): void;
};

/** The first pause after what may mend itself. */
export const RETRY_MS = 5000;
const LONGEST_MS = 10 * 60 * 1000;
const JITTER = 0.2;
/** From the second failure for one reason on, a change does not bring the next generation at once either. */
const CHANGE_WAITS_MS = 5000;
const CHANGE_WAITS_LONGEST_MS = 60_000;

/**
 * A generation that is stopped or broken off as the one before, for a cause it does not mend, may be the cause itself: each waits
 * twice as long as the last, and up to a fifth more by chance. Failures of some minions are not of this kind: see `retryInMs`.
 */
export function createPatience(random: () => number = Math.random): Patience {
  let reason: string | undefined;
  let failures = 0;
  return {
    failed(why, initialMs) {
      failures = why === reason ? failures + 1 : 1;
      reason = why;
      const grown = initialMs * 2 ** Math.min(failures - 1, 20) * (1 + JITTER * random());
      const least = failures < 2 ? 0 : CHANGE_WAITS_MS * 2 ** Math.min(failures - 2, 20);
      const atMostMs = Math.min(grown, LONGEST_MS);
      return { atMostMs, atLeastMs: Math.min(least, CHANGE_WAITS_LONGEST_MS, atMostMs), failures };
    },
    forget() {
      reason = undefined;
      failures = 0;
    },
  };
}

/**
 * Until minions that have failed so often are tried again, milliseconds. Others do not wait for them.
 * @param chance from 0 to 1, shared by those of one generation, so that they are tried together
 */
export function retryInMs(tries: number, chance: number): number {
  return Math.min(RETRY_MS * 2 ** Math.min(tries - 1, 20) * (1 + JITTER * chance), LONGEST_MS);
}
