import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { ColonnadeError } from '@colonnade/contracts';
import { Redis, type RedisOptions } from 'ioredis';

export type RedisAddress = {
  /** Who knows where the Redis is; its host and port in `url` then count for nothing. */
  sentinels?: { hosts: readonly { host: string; port: number }[]; name: string } | undefined;
  /** `redis://host:port`, or `rediss://` for TLS. */
  url: string;
  user: string | undefined;
  password: string | undefined;
  /** PEM of the authorities that may sign the server's certificate; undefined: the system's. */
  caFile: string | undefined;
};

/** How long a command may take before the bridge counts as unavailable. */
const COMMAND_TIMEOUT_MS = 2000;
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2000;

/**
 * One connection to the bridge's Redis, not yet opened. It reconnects for ever; while there is no connection every
 * command fails at once, since an answer that waits in a queue would come too late.
 */
export function createRedis(address: RedisAddress, use: 'reader' | 'commands', name: string): Redis {
  const redis = new Redis({
    ...whereIs(address),
    ...(address.user === undefined ? {} : { username: address.user }),
    ...(address.password === undefined ? {} : { password: address.password }),
    connectionName: `${name}-${use}`,
    // Unknown to Redis 7.0.
    disableClientInfo: true,
    // Replies of one known shape, whatever the server speaks.
    protocol: 2,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: use === 'commands',
    ...(use === 'commands' ? { commandTimeout: COMMAND_TIMEOUT_MS } : {}),
    retryStrategy: (attempt) => {
      const delayMs = Math.min(RETRY_MIN_MS * 2 ** attempt, RETRY_MAX_MS);
      return delayMs / 2 + Math.random() * (delayMs / 2);
    },
  });
  // When the buffers of all clients are over their limit, Redis closes the largest. That is to be a flooding one, and
  // not the merger that is reading what it sent.
  redis.on('ready', () => void redis.call('CLIENT', 'NO-EVICT', 'ON').catch(() => {}));
  return redis;
}

function whereIs({ url, sentinels, caFile }: RedisAddress): RedisOptions {
  const { hostname: host, port, protocol } = new URL(url);
  const isTls = protocol === 'rediss:';
  if (sentinels === undefined) {
    return { host, port: Number(port || 6379), ...(isTls ? { tls: tlsOptions(caFile, host) } : {}) };
  }
  const tls = tlsOptions(caFile);
  return {
    sentinels: [...sentinels.hosts],
    name: sentinels.name,
    ...(isTls ? { tls, sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
    // The one that was the master is a replica now: ask the Sentinels again.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
}

/** An address is no server name; the certificate is checked against it all the same. */
function tlsOptions(caFile: string | undefined, host = ''): ConnectionOptions {
  return Object.defineProperties(host !== '' && isIP(host) === 0 ? { servername: host } : {}, {
    ...(caFile === undefined ? {} : { ca: { get: readAnew(caFile), enumerable: true } }),
  });
}

/** The client copies the options for each connection, so a new authority needs no restart. A file that is away for a moment would end it. */
function readAnew(file: string): () => Buffer {
  let last = readFileSync(file);
  return () => {
    try {
      last = readFileSync(file);
    } catch {
      // The one before may still do.
    }
    return last;
  };
}

/**
 * Turns what the client throws into our error. The original is dropped on purpose: it carries the arguments of the
 * command, and those of a reply hold plaintext.
 */
export function fromRedisError(thrown: unknown): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  const message = thrown instanceof Error ? thrown.message : 'unknown fault';
  return new ColonnadeError('redis_unavailable', `Redis: ${message.slice(0, 200)}`);
}

export function isNoGroup(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.message.startsWith('NOGROUP');
}

/** The library of functions is gone: Redis was restarted or flushed. */
export function isUnknownFunction(thrown: unknown): boolean {
  return thrown instanceof Error && /Function not found/u.test(thrown.message);
}

/**
 * XCLAIM with the fields as bytes. The method is there and only its type is missing; the general `callBuffer` loses the
 * command's name where commands are pipelined by themselves.
 */
export function claimBuffers(redis: Redis, ...args: readonly (string | number)[]): Promise<unknown> {
  return (redis as Redis & { xclaimBuffer(...args: readonly unknown[]): Promise<unknown> }).xclaimBuffer(
    ...args,
  );
}
