import { BRIDGE_MASTERS_KEY, bridgeRequestKey } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { guardStream, type StreamFault } from './functions.ts';

/** The masters whose streams are read. */
export type Streams = {
  readonly masters: readonly string[];
  /**
   * Takes the masters of the estate, and those that Redis knows from before: a removed master still gets its
   * `unknown_master`, for a while. Makes every stream and its group, from the first entry on: what was added before the
   * group is not lost.
   * @param masters undefined when the estate cannot be read: then none is left out, though Redis may have forgotten it
   */
  update(redis: Redis, masters: readonly string[] | undefined): Promise<void>;
  /** Makes streams and groups that are missing, and puts right what is wrong with one. */
  guard(redis: Redis): Promise<void>;
};

/** A removed master's stream is read for so long, milliseconds, and then until it is empty. */
const GONE_KEEP_MS = 10 * 60_000;

/** @param onFault told what was wrong with a stream, by the one merger that put it right */
export function createStreams(
  onFault: (fault: StreamFault) => void,
  goneKeepMs: number = GONE_KEEP_MS,
): Streams {
  let known: readonly string[] = [];
  /** Removed masters, and when this was seen. */
  const goneSinceMs = new Map<string, number>();
  const guardOne = async (redis: Redis, master: string): Promise<void> => {
    const fault = await guardStream(redis, master);
    if (fault !== undefined) onFault(fault);
  };
  const guard = async (redis: Redis): Promise<void> => {
    await Promise.all(known.map((master) => guardOne(redis, master)));
  };
  /** Of those Redis knows, the ones to be read on. */
  const dropGone = async (redis: Redis, masters: readonly string[], before: readonly string[]) => {
    const isThere = new Set(masters);
    const gone = before.filter((master) => !isThere.has(master));
    for (const master of goneSinceMs.keys()) if (!gone.includes(master)) goneSinceMs.delete(master);
    for (const master of gone) {
      const sinceMs = goneSinceMs.get(master) ?? performance.now();
      goneSinceMs.set(master, sinceMs);
      if (performance.now() - sinceMs < goneKeepMs || (await redis.xlen(bridgeRequestKey(master))) > 0)
        continue;
      await redis.hdel(BRIDGE_MASTERS_KEY, master);
      goneSinceMs.delete(master);
    }
    return gone.filter((master) => goneSinceMs.has(master));
  };
  return {
    get masters() {
      return known;
    },
    async update(redis, masters) {
      const before = await redis.hkeys(BRIDGE_MASTERS_KEY);
      const kept = masters === undefined ? [...before, ...known] : await dropGone(redis, masters, before);
      known = [...new Set([...(masters ?? []), ...kept])].sort();
      if (masters !== undefined && masters.length > 0) {
        await redis.hset(BRIDGE_MASTERS_KEY, Object.fromEntries(masters.map((master) => [master, '1'])));
      }
      await guard(redis);
    },
    guard,
  };
}
