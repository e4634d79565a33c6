import path from 'node:path';
import {
  type FoundServer,
  findNatsServer,
  findRedisServer,
  type NatsOptions,
  type NatsServer,
  type RedisOptions,
  type RedisServer,
  startNats,
  startRedis,
} from '@colonnade/embedded/servers';
import { type TempDir, tempDir } from './temp.ts';

const finders = { nats: findNatsServer, redis: findRedisServer };

export type ServerName = keyof typeof finders;

/** The program of a server; a missing one is installed, which is told on standard error. */
export async function findForTests(name: ServerName): Promise<FoundServer> {
  return await finders[name]({ report: (text) => console.error(text) });
}

/**
 * What to hand to a test's `skip`: false when the servers are here or could be installed, else why not.
 * `npm test` counts a skip as a failure where everything is required.
 */
export async function skipWithout(...names: readonly ServerName[]): Promise<false | string> {
  for (const name of names) {
    const found = await findForTests(name).catch((error: Error) => error);
    if (found instanceof Error) return found.message;
  }
  return false;
}

/**
 * A nats-server of the test's own: a free port, a fresh store, the users and rights given. It and its files go when
 * it is disposed of: `await using nats = await natsForTests({ configText })`.
 */
export async function natsForTests(options: Pick<NatsOptions, 'configText'>): Promise<NatsServer> {
  const { path: binary } = await findForTests('nats');
  return await inTempDir('nats', (dir) => startNats({ binary, dir, ...options }));
}

/** A redis-server of the test's own, set up as the bridge's: a free port, an administrator, the users given. */
export async function redisForTests(
  options: Omit<RedisOptions, 'binary' | 'dir' | 'unixSocket'> & { unixSocket?: boolean } = {},
): Promise<RedisServer> {
  const { path: binary } = await findForTests('redis');
  const { unixSocket, ...rest } = options;
  return await inTempDir('redis', (dir) => {
    const socket = unixSocket ? { unixSocket: path.join(dir, 'redis.sock') } : {};
    return startRedis({ binary, dir, ...rest, ...socket });
  });
}

/** Ties a folder's life to the server's in it. */
async function inTempDir<T extends AsyncDisposable>(
  label: string,
  start: (dir: string) => Promise<T>,
): Promise<T> {
  const dir: TempDir = await tempDir(label);
  try {
    const server = await start(dir.path);
    const stop = server[Symbol.asyncDispose];
    return Object.defineProperty(server, Symbol.asyncDispose, {
      value: async () => {
        await stop();
        await dir[Symbol.asyncDispose]();
      },
    });
  } catch (error) {
    await dir[Symbol.asyncDispose]();
    throw error;
  }
}
