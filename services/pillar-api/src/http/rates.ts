import { ColonnadeError } from '@colonnade/contracts';
import type { FastifyReply } from 'fastify';

/** A token bucket for each caller, in memory: of several processes each has its own. */
export type Rates = {
  /** Takes one request of this caller's. */
  take(key: string): Taken;
};

export type Taken = {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Seconds until the next request is allowed, or until all are again. */
  resetS: number;
};

/** Callers remembered; beyond that the ones that have had the longest pause are forgotten, and begin anew. */
const REMEMBERED = 10_000;

/** @param options.perMinute requests that come back in a minute; `burst`: requests a full bucket holds */
export function createRates(options: { perMinute: number; burst: number; nowMs?: () => number }): Rates {
  const { perMinute, burst, nowMs = () => performance.now() } = options;
  const perMs = perMinute / 60_000;
  const buckets = new Map<string, { level: number; atMs: number }>();
  return {
    take(key) {
      const now = nowMs();
      const bucket = buckets.get(key) ?? { level: burst, atMs: now };
      const level = Math.min(burst, bucket.level + (now - bucket.atMs) * perMs);
      const allowed = level >= 1;
      const left = allowed ? level - 1 : level;
      // Taken out and put back: the order of the map is that of the last use.
      buckets.delete(key);
      if (buckets.size >= REMEMBERED) buckets.delete(buckets.keys().next().value as string);
      buckets.set(key, { level: left, atMs: now });
      const missing = allowed ? burst - left : 1 - left;
      return {
        allowed,
        limit: burst,
        remaining: Math.floor(left),
        resetS: Math.ceil(missing / perMs / 1000),
      };
    },
  };
}

/**
 * Counts a request, and says in RateLimit headers (draft-ietf-httpapi-ratelimit-headers, as most clients read them)
 * how many more there are.
 * @throws ColonnadeError `rate_limited`
 */
export function limitRate(rates: Rates, key: string, reply: FastifyReply): void {
  const { allowed, limit, remaining, resetS } = rates.take(key);
  reply.header('ratelimit-limit', String(limit));
  reply.header('ratelimit-remaining', String(remaining));
  reply.header('ratelimit-reset', String(resetS));
  if (allowed) return;
  reply.header('retry-after', String(Math.max(1, resetS)));
  throw new ColonnadeError('rate_limited', 'too many requests with this token: see GET /limits');
}
