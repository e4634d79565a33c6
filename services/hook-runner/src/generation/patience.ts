import type { GenerationRecord } from '../store/generation-store.ts';

/** How long the next generation waits: at most, and at least, however many changes come meanwhile. Milliseconds. */
export type Pause = { atMostMs: number; atLeastMs: number; failures: number };
export type Patience = {
  /** @param why two failures for the same reason are told by it, and the second waits longer */
  failed(why: string, initialMs: number): Pause;
  forget(): void;
};

const LONGEST_MS = 10 * 60 * 1000;
const JITTER = 0.2;
/** From the second failure for one reason on, a change does not bring the next generation at once either. */
const CHANGE_WAITS_MS = 5000;
const CHANGE_WAITS_LONGEST_MS = 60_000;

/**
 * A generation that fails as the one before fails for a cause it does not mend, and may be the cause itself: each waits twice
 * as long as the last, and up to a fifth more by chance.
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

/** The kinds of failures, whichever minions they are of; without any, what stopped it. */
export function whyFailed({ failed, reason }: Pick<GenerationRecord, 'failed' | 'reason'>): string {
  const kinds = new Set(failed.map((one) => one.reason.split(':', 1)[0]));
  return kinds.size === 0 ? (reason ?? '') : [...kinds].sort().join(', ');
}
