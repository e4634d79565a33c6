import { BRIDGE_MASTERS_KEY } from '@colonnade/contracts';
import type { Redis } from 'ioredis';
import { guardStream, type StreamFault } from './functions.ts';

/** The masters whose streams are read. */
export type Streams = {
  readonly masters: readonly string[];
  /**
   * Takes the masters of the estate, and those whose streams were read before: a removed master still gets its
   * `unknown_master`. Makes every stream and its group, from the first entry on: what was added before the group is
   * not lost.
   */
  update(redis: Redis, masters: readonly string[]): Promise<void>;
  /** Makes streams and groups that are missing, and puts right what is wrong with one. */
  guard(redis: Redis): Promise<void>;
};

/** @param onFault told what was wrong with a stream, by the one merger that put it right */
export function createStreams(onFault: (fault: StreamFault) => void): Streams {
  let known: readonly string[] = [];
  const guardOne = async (redis: Redis, master: string): Promise<void> => {
    const fault = await guardStream(redis, master);
    if (fault !== undefined) onFault(fault);
  };
  const guard = async (redis: Redis): Promise<void> => {
    await Promise.all(known.map((master) => guardOne(redis, master)));
  };
  return {
    get masters() {
      return known;
    },
    async update(redis, masters) {
      const before = await redis.hkeys(BRIDGE_MASTERS_KEY);
      known = [...new Set([...masters, ...before])].sort();
      if (masters.length > 0) {
        await redis.hset(BRIDGE_MASTERS_KEY, Object.fromEntries(masters.map((master) => [master, '1'])));
      }
      await guard(redis);
    },
    guard,
  };
}
