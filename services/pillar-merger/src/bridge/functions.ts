import { readFileSync } from 'node:fs';
import { BRIDGE_FN_REPLY, BRIDGE_GROUP, bridgeReplyKey, bridgeRequestKey } from '@colonnade/contracts';
import type { Redis } from 'ioredis';

const LIBRARY = readFileSync(new URL('./bridge-functions.lua', import.meta.url), 'utf8');
const FN_FORGET = 'colonnade_bridge_forget';

/** Puts the functions of the bridge into Redis, which forgets them with a restart. */
export async function loadFunctions(redis: Redis): Promise<void> {
  await redis.function('LOAD', 'REPLACE', LIBRARY);
}

export type StoredReply = {
  master: string;
  entryId: string;
  /** From the entry's id on. */
  ttlMs: number;
  /** How long the reply waits for the master to take it. */
  keepMs: number;
  text: string;
};

/** Stores a reply. False: it was too late, or the entry had been answered. */
export async function storeReply(redis: Redis, reply: StoredReply): Promise<boolean> {
  const { master, entryId } = reply;
  const keys = [bridgeRequestKey(master), bridgeReplyKey(master, entryId)];
  const args = [BRIDGE_GROUP, entryId, reply.ttlMs, reply.keepMs, reply.text];
  return (await redis.fcall(BRIDGE_FN_REPLY, keys.length, ...keys, ...args)) === 1;
}

/** Removes a consumer of a master's stream if it has nothing pending and was idle for so long. */
export async function forgetConsumer(
  redis: Redis,
  master: string,
  consumer: string,
  minIdleMs: number,
): Promise<boolean> {
  const removed = await redis.fcall(
    FN_FORGET,
    1,
    bridgeRequestKey(master),
    BRIDGE_GROUP,
    consumer,
    minIdleMs,
  );
  return removed === 1;
}
