import { BRIDGE_GROUP, BRIDGE_MASTERS_KEY, bridgeRequestKey } from '@colonnade/contracts';
import type { Redis } from 'ioredis';

/** The masters whose streams are read. */
export type Streams = {
  readonly masters: readonly string[];
  /**
   * Takes the masters of the estate, and those whose streams were read before: a removed master still gets its
   * `unknown_master`. Makes every stream and its group, from the first entry on: what was added before the group is
   * not lost.
   */
  update(redis: Redis, masters: readonly string[]): Promise<void>;
  /** Makes groups again that are gone. */
  restore(redis: Redis): Promise<void>;
};

export function createStreams(): Streams {
  let known: readonly string[] = [];
  const restore = async (redis: Redis): Promise<void> => {
    await Promise.all(known.map((master) => createGroup(redis, master)));
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
      await restore(redis);
    },
    restore,
  };
}

async function createGroup(redis: Redis, master: string): Promise<void> {
  try {
    await redis.xgroup('CREATE', bridgeRequestKey(master), BRIDGE_GROUP, '0', 'MKSTREAM');
  } catch (thrown) {
    if (!(thrown instanceof Error) || !thrown.message.startsWith('BUSYGROUP')) throw thrown;
  }
}
