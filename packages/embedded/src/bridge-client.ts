import {
  BRIDGE_EVENT,
  BRIDGE_FN_REQUEST,
  type BridgeReply,
  bridgeReplyKey,
  bridgeRequestKey,
  ColonnadeError,
  LIMITS,
  readBridgeReply,
  writeBridgeRequest,
} from '@colonnade/contracts';
import { Redis, type RedisOptions } from 'ioredis';
import { createReplyReader, type ReplyReader } from './reply-reader.ts';

export type BridgeClientOptions = {
  host: string;
  port: number;
  username: string;
  password: string;
  master: string;
  token: string;
  tls?: RedisOptions['tls'];
  /** All replies over one connection, for a client that lives long and asks much at once; Salt's workers have one each. */
  sharedReader?: boolean;
};

export type AskBridge = (question: {
  minionId: string;
  pillarenv: string;
  /** Milliseconds, counted by Redis from the moment the request is added. */
  ttlMs?: number;
}) => Promise<BridgeReply>;

/** A Salt master's side of the bridge, for tests and demonstrations: the same function, stream and reply key. */
export type BridgeClient = AsyncDisposable & {
  /** @throws ColonnadeError `unavailable` (no merger, no reply in time), `overloaded`, `redis_unavailable` */
  ask: AskBridge;
  /** Adds a payload as it is and returns the entry's id: for trying what a broken master would send. */
  sendRaw(payload: string): Promise<string>;
  /** Waits for the reply of an entry; undefined when none came. */
  receive(entryId: string, waitMs: number): Promise<BridgeReply | undefined>;
};

const DEFAULT_TTL_MS = 2000;

export function connectBridge(options: BridgeClientOptions): BridgeClient {
  const { host, port, username, password, master, token, tls, sharedReader = false } = options;
  const open = (enableAutoPipelining = false) =>
    new Redis({
      host,
      port,
      username,
      password,
      maxRetriesPerRequest: 1,
      enableReadyCheck: false,
      lazyConnect: true,
      enableAutoPipelining,
      ...(tls === undefined ? {} : { tls }),
    });
  const commands = quiet(open(sharedReader));
  const reader = sharedReader ? createReplyReader(() => quiet(open())) : createReaders(() => quiet(open()));

  const sendRaw = async (payload: string) => {
    const id = await commands
      .fcall(BRIDGE_FN_REQUEST, 1, bridgeRequestKey(master), LIMITS.bridgeQueueLength, payload)
      .catch((thrown: unknown) => Promise.reject(fromRedisError(thrown)));
    return String(id);
  };
  const receive = async (entryId: string, waitMs: number) => {
    const reply = await reader
      .receive(bridgeReplyKey(master, entryId), Math.max(waitMs, 1))
      .catch((thrown: unknown) => Promise.reject(fromRedisError(thrown)));
    return reply === undefined ? undefined : readBridgeReply(reply);
  };
  return {
    sendRaw,
    receive,
    async ask({ minionId, pillarenv, ttlMs = DEFAULT_TTL_MS }) {
      const request = {
        v: 1,
        event: BRIDGE_EVENT,
        master,
        minion_id: minionId,
        pillarenv,
        token,
        ttl_ms: ttlMs,
      } as const;
      const id = await sendRaw(writeBridgeRequest(request));
      const reply = await receive(id, ttlMs);
      if (reply === undefined) throw new ColonnadeError('unavailable', `no reply within ${ttlMs} ms`);
      if (reply.id !== id) throw new ColonnadeError('internal', 'a reply to another request');
      return reply;
    },
    async [Symbol.asyncDispose]() {
      commands.disconnect();
      reader.close();
    },
  };
}

/** A connection to itself for each reply that is waited for, as Salt's workers have it: BLPOP holds it. */
function createReaders(open: () => Redis): ReplyReader {
  const idle: Redis[] = [];
  const all = new Set<Redis>();
  return {
    async receive(key, waitMs) {
      const redis = idle.pop() ?? open();
      all.add(redis);
      const popped = await redis.blpop(key, waitMs / 1000).finally(() => idle.push(redis));
      return popped?.[1];
    },
    close() {
      for (const redis of all) redis.disconnect();
    },
  };
}

/** Connection faults reach the caller through the command that fails. */
function quiet(redis: Redis): Redis {
  redis.on('error', () => {});
  return redis;
}

function fromRedisError(thrown: unknown): ColonnadeError {
  const message = thrown instanceof Error ? thrown.message : '';
  if (message.startsWith('OVERLOADED')) return new ColonnadeError('overloaded', 'the request stream is full');
  if (message.startsWith('NO_MERGER') || /function not found/iu.test(message)) {
    return new ColonnadeError('unavailable', 'no live merger', { cause: thrown });
  }
  return new ColonnadeError('redis_unavailable', 'Redis does not take the request', { cause: thrown });
}
