import { readFileSync } from 'node:fs';
import {
  BRIDGE_FN_GUARD,
  BRIDGE_FN_REPLY,
  BRIDGE_GROUP,
  bridgeReplyKey,
  bridgeRequestKey,
  LIMITS,
} from '@colonnade/contracts';
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

/** What a master's stream was like that should not be: see bridge-functions.lua. */
export type StreamFault = {
  master: string;
  kind: 'foreign_type' | 'exhausted' | 'too_long' | 'too_large';
  /** Entries that nobody will answer. */
  dropped: number;
};

/** Clocks may be set back by so much, milliseconds, before a stream's ids count as made up. */
const ID_AHEAD_MS = 60_000;

/** Makes a master's stream and its group if they are missing, and puts right what only a hand-made command can do. */
export async function guardStream(redis: Redis, master: string): Promise<StreamFault | undefined> {
  const args = [BRIDGE_GROUP, LIMITS.bridgeQueueLength, LIMITS.bridgeQueueBytes, ID_AHEAD_MS];
  const answer = await redis.fcall(BRIDGE_FN_GUARD, 1, bridgeRequestKey(master), ...args);
  const [kind, dropped] = answer as [StreamFault['kind'] | 'none', number];
  return kind === 'none' ? undefined : { master, kind, dropped };
}
