/** Says whether this many units may be taken now. */
export type RateLimit = { take(key: string, units: number): boolean };

/** Keys remembered; the one unused for longest goes first, and starts full again when it comes back. */
const MAX_KEYS = 10_000;

/**
 * A token bucket per key, full at first and holding one second's worth.
 * @param perSecond units per second and key
 * @param now milliseconds, of a clock that never goes back
 */
export function createRateLimit(perSecond: number, now: () => number = () => performance.now()): RateLimit {
  const buckets = new Map<string, { units: number; atMs: number }>();
  return {
    take(key, units) {
      const at = now();
      const bucket = buckets.get(key) ?? { units: perSecond, atMs: at };
      const level = Math.min(perSecond, bucket.units + ((at - bucket.atMs) / 1000) * perSecond);
      const granted = units <= level;
      buckets.delete(key);
      buckets.set(key, { units: granted ? level - units : level, atMs: at });
      if (buckets.size > MAX_KEYS) buckets.delete(buckets.keys().next().value as string);
      return granted;
    },
  };
}
