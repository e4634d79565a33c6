import { bridgeRefreshKey, encode, LIMITS, zBridgeRefresh } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { fromRedisError } from './redis.ts';

export type Refresh = { master: string; generation: string; minions: readonly string[] };

/** A stream that nobody writes to any more goes; longer than the age at which a Salt engine drops an entry. */
const KEEP_MS = 86_400_000;

/**
 * Adds an entry to a master's refresh stream. The stream keeps its last entries, read or not: a master without the engine reads
 * none, and must not fill Redis.
 * @returns the entry's id
 * @throws ColonnadeError `redis_unavailable`: nothing is in the stream, or nobody knows
 */
export async function addRefresh(redis: Redis, { master, generation, minions }: Refresh): Promise<string> {
  const key = bridgeRefreshKey(master);
  const data = Buffer.from(encode(zBridgeRefresh, { v: 1, generation, minions: [...minions] }));
  try {
    const id = await redis.xadd(key, 'MAXLEN', '~', LIMITS.refreshEntries, '*', 'data', data);
    await redis.pexpire(key, KEEP_MS);
    return String(id);
  } catch (thrown) {
    throw fromRedisError(thrown);
  }
}
