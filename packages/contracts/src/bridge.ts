import { createHash } from 'node:crypto';
import { z } from 'zod';
import { int, zValue } from './codec.ts';
import { LIMITS } from './limits.ts';
import { zPillarenvRequest } from './merger.ts';
import { zMasterId, zMinionId } from './names.ts';

/** The Redis bridge between Salt masters and pillar-merger: keys, functions, messages, rights. */
export const BRIDGE_EVENT = 'master_get_pillar_data';
export const BRIDGE_GROUP = 'mergers';
export const BRIDGE_ALIVE_KEY = 'colonnade:bridge:alive';
export const BRIDGE_MASTERS_KEY = 'colonnade:bridge:masters';
export const BRIDGE_LIBRARY = 'colonnade_bridge';
export const BRIDGE_FN_REQUEST = 'colonnade_bridge_request';
export const BRIDGE_FN_GUARD = 'colonnade_bridge_guard';
export const BRIDGE_FN_REPLY = 'colonnade_bridge_reply';
/** The one field of a stream entry. */
export const BRIDGE_FIELD = 'data';

export function bridgeRequestKey(master: string): string {
  return `colonnade:bridge:req:${master}`;
}

/** Derived from the entry's id, never taken from a request. */
export function bridgeReplyKey(master: string, entryId: string): string {
  return `colonnade:bridge:rep:${master}:${entryId}`;
}

/** Of a master: whose pillar its Salt is to refresh. It may read it, and nothing else. */
export function bridgeRefreshKey(master: string): string {
  return `colonnade:bridge:refresh:${master}`;
}

/** One entry of that stream. */
export const zBridgeRefresh = z.strictObject({
  v: int({ min: 1, max: 1 }),
  /** The generation that changed their policies, by its name. */
  generation: z.string(),
  minions: z.array(zMinionId).min(1).max(LIMITS.refreshMinions),
});

/** Seed 000, BridgePillarDataRequest, with what our wire adds to it. */
export const zBridgeRequest = z.strictObject({
  v: int({ min: 1, max: 1 }),
  event: z.literal(BRIDGE_EVENT),
  master: zMasterId,
  minion_id: zMinionId,
  pillarenv: zPillarenvRequest,
  token: z.string().min(1).max(8192),
  /** Milliseconds from the entry id's own clock. */
  ttl_ms: int({ min: LIMITS.bridgeTtlMinMs }),
  traceparent: z.string().max(64).optional(),
});
export type BridgeRequest = z.infer<typeof zBridgeRequest>;

export const BRIDGE_ERROR_CODES = [
  'bad_request',
  'unauthorized',
  'forbidden',
  'unknown_master',
  'unknown_minion',
  'overloaded',
  'expired',
  'too_large',
  'unavailable',
  'kms_unavailable',
  'kms_refused',
  'internal',
] as const;
export type BridgeErrorCode = (typeof BRIDGE_ERROR_CODES)[number];

export const zBridgeReply = z.union([
  z.strictObject({
    v: int({ min: 1, max: 1 }),
    id: z.string(),
    ok: z.literal(true),
    pillar: zValue,
    clock: int(),
  }),
  z.strictObject({
    v: int({ min: 1, max: 1 }),
    id: z.string(),
    ok: z.literal(false),
    error: z.strictObject({ code: z.enum(BRIDGE_ERROR_CODES), message: z.string().max(512) }),
  }),
]);
export type BridgeReply = z.infer<typeof zBridgeReply>;

/** The Redis user of a master. */
export function masterRedisUser(master: string): string {
  return `master-${master}`;
}

/**
 * The rules of a master's Redis user for `ACL SETUSER` or an aclfile: it may add to its own stream through the bridge's
 * function, pop its own replies, read whom it is to refresh, and nothing else. No EVAL: a master cannot run Lua of its own.
 * @param password is hashed here; the rule never holds it
 */
export function masterAclRules(master: string, password: string): readonly string[] {
  const request = bridgeRequestKey(master);
  return [
    'reset',
    'on',
    `#${createHash('sha256').update(password).digest('hex')}`,
    'resetchannels',
    '-@all',
    ...['fcall', 'xadd', 'xlen', 'exists', 'time', 'ping', 'hello', 'auth'].map((c) => `+${c}`),
    '+client|setname',
    `~${request}`,
    `%R~${BRIDGE_ALIVE_KEY}`,
    // Apart from the rest: with XADD on its reply keys a master could make streams that never expire.
    `(+blpop +lpop ~${bridgeReplyKey(master, '*')})`,
    `(+xread +xrevrange %R~${bridgeRefreshKey(master)})`,
  ];
}

/** The rules of the mergers' Redis user. */
export function mergerAclRules(password: string): readonly string[] {
  const commands = [
    ...[
      'fcall',
      'function',
      'xreadgroup',
      'xautoclaim',
      'xclaim',
      'xpending',
      'xack',
      'xdel',
      'xlen',
      'xrange',
      'xadd',
      'xtrim',
      'type',
      'memory|usage',
    ],
    ...[
      'xgroup',
      'xinfo',
      'set',
      'get',
      'del',
      'exists',
      'rpush',
      'pexpire',
      'time',
      'hset',
      'hdel',
      'hgetall',
      'hkeys',
    ],
    ...[
      'hello',
      'auth',
      'ping',
      'info',
      'config|get',
      'client|setname',
      'client|id',
      'client|unblock',
      'client|no-evict',
    ],
  ];
  return [
    'reset',
    'on',
    `#${createHash('sha256').update(password).digest('hex')}`,
    'resetchannels',
    '-@all',
    ...commands.map((c) => `+${c}`),
    '~colonnade:bridge:*',
  ];
}
