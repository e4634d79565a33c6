import { brewWay } from './brew.ts';
import { installDebian } from './debian.ts';
import { type FindOptions, type FoundServer, findServer } from './find-server.ts';
import { installerEnv } from './tools.ts';

/**
 * The program `redis-server`, 7.0 or later: COLONNADE_REDIS_SERVER, the PATH, the tools cache, else unpacked from
 * Debian's packages into the cache (no root needed, nothing installed into the system) or installed with Homebrew.
 * @throws ColonnadeError `unavailable` that names the command which installs it
 */
export async function findRedisServer(options: FindOptions): Promise<FoundServer> {
  const env = installerEnv(options.env ?? process.env);
  const kind = {
    name: 'redis-server',
    atLeast: [7, 0],
    variable: 'COLONNADE_REDIS_SERVER',
    byHand: 'sudo apt-get install redis-server   (or: brew install redis)',
    ways: [
      {
        label: "Debian's packages",
        folder: `redis-server-debian-${process.arch}`,
        install: (dir: string) => installDebian('redis-server', ['redis-server', 'redis-tools'], dir, env),
      },
      brewWay('redis-server', env, 'redis'),
    ],
  } as const;
  return await findServer(kind, options);
}
