/**
 * Every refused stranger leaves a record in the stream AUDIT, and a full stream stops all changes: without a limit,
 * whoever reaches the port could stop the estate. Counted per address; who has a token is never limited.
 */
export type DenialLimit = {
  /** Counts one more. @returns false when the address has had its share of this minute */
  allow(address: string): boolean;
};

const WINDOW_MS = 60_000;
/** Addresses remembered; beyond that they share one count. */
const MAX_ADDRESSES = 10_000;
const OTHERS = 'others';

export function createDenialLimit(
  perMinute: number,
  nowMs: () => number = () => performance.now(),
): DenialLimit {
  let counts = new Map<string, number>();
  let windowEndsMs = 0;
  return {
    allow(address) {
      if (nowMs() >= windowEndsMs) {
        counts = new Map();
        windowEndsMs = nowMs() + WINDOW_MS;
      }
      const key = counts.has(address) || counts.size < MAX_ADDRESSES ? address : OTHERS;
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      return count <= perMinute;
    },
  };
}
