import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { startChild } from './child.ts';
import { redisAclText, redisConfigText } from './redis-config.ts';
import { type RunningServer, superviseServer, waitReady } from './supervise.ts';

export type RedisOptions = {
  /** The program, from `findRedisServer`. */
  binary: string;
  /** For the configuration, the ACL file and the log. */
  dir: string;
  /** Any free one unless given. */
  port?: number;
  /** A path of at most 100 bytes; Redis then listens there too. */
  unixSocket?: string;
  /** Made up unless given. */
  adminPassword?: string;
  /** Lines of an ACL file, `user <name> on #<sha256> ...`, for users known from the start. */
  aclUsers?: readonly string[];
  maxMemoryMb?: number;
  /** More lines of redis.conf. */
  extraConfig?: string;
};

export type RedisServer = RunningServer & {
  /** Without user and password. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly unixSocket: string | undefined;
  readonly adminUser: string;
  /** A secret: not for logs. */
  readonly adminPassword: string;
};

const adminUser = 'colonnade-admin';
const host = '127.0.0.1';

/**
 * Starts a redis-server fit for the bridge on 127.0.0.1. It ends with this process; a restart keeps the port, and
 * the users that were saved with ACL SAVE.
 * @throws ColonnadeError `unavailable` when it does not start, with the end of its log
 */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const { dir, adminPassword = randomBytes(24).toString('base64url') } = options;
  await mkdir(dir, { recursive: true });
  const acl = redisAclText(adminUser, adminPassword, options.aclUsers ?? []);
  await writeFile(path.join(dir, 'users.acl'), acl, { mode: 0o600 });
  const start = (port: number) => launch(options, port);
  const { child, port } = options.port
    ? { child: await start(options.port), port: options.port }
    : await startOnFreePort(start);
  const server = superviseServer(child, path.join(dir, 'redis.log'), () => start(port));
  return Object.defineProperties(server, {
    url: { value: `redis://${host}:${port}`, enumerable: true },
    host: { value: host, enumerable: true },
    port: { value: port, enumerable: true },
    unixSocket: { value: options.unixSocket, enumerable: true },
    adminUser: { value: adminUser, enumerable: true },
    adminPassword: { value: adminPassword },
  }) as RedisServer;
}

/** Redis cannot pick a port itself; between our look and its start another process may take the one we found. */
async function startOnFreePort<T>(start: (port: number) => Promise<T>): Promise<{ child: T; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    try {
      return { child: await start(port), port };
    } catch (error) {
      const taken = error instanceof Error && error.message.includes('Address already in use');
      if (!taken || attempt === 5) throw error;
    }
  }
}

async function launch(options: RedisOptions, port: number) {
  const { dir, unixSocket, maxMemoryMb = 256, extraConfig = '' } = options;
  const configFile = path.join(dir, 'redis.conf');
  const aclFile = path.join(dir, 'users.acl');
  const text = redisConfigText({ dir, aclFile, port, unixSocket, maxMemoryMb, extra: extraConfig });
  await writeFile(configFile, text, { mode: 0o600 });
  const logFile = path.join(dir, 'redis.log');
  const from = await sizeOf(logFile);
  const child = await startChild({ command: options.binary, args: [configFile], logFile });
  await waitReady('redis-server', child, logFile, () => saysReady(logFile, from));
  return child;
}

/**
 * Redis says so itself. To ask over the network could be to ask, and to tell a password to, another process that
 * took the port just before ours.
 */
async function saysReady(logFile: string, from: number): Promise<true | undefined> {
  const text = (await readFile(logFile)).subarray(from).toString();
  return text.includes('Ready to accept connections') ? true : undefined;
}

async function sizeOf(file: string): Promise<number> {
  return await stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

/** A port of 127.0.0.1 that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
