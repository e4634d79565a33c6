import { ColonnadeError } from '@colonnade/contracts';
import type { Redis } from 'ioredis';

/** What the bridge's Redis must be set to, so that plaintext reaches no disk or log and no request is evicted. */
const REQUIRED: Readonly<Record<string, string>> = {
  save: '',
  appendonly: 'no',
  'maxmemory-policy': 'noeviction',
  'repl-diskless-sync': 'yes',
  'crash-log-enabled': 'no',
  'crash-memcheck-enabled': 'no',
  // Its entries hold the arguments of commands.
  'slowlog-log-slower-than': '-1',
};
const MIN_MAJOR = 7;

/**
 * Asks Redis how it is set up.
 * @throws ColonnadeError `misconfigured` that names every setting that is wrong and what it must be
 */
export async function checkRedis(redis: Redis): Promise<void> {
  const faults = [...(await checkVersion(redis)), ...(await checkSettings(redis))];
  if (faults.length > 0) {
    throw new ColonnadeError('misconfigured', `this Redis must not carry secrets: ${faults.join('; ')}`);
  }
}

async function checkVersion(redis: Redis): Promise<readonly string[]> {
  const info = await redis.info('server');
  const version = /redis_version:(\d+)/u.exec(info)?.[1];
  if (Number(version) < MIN_MAJOR) return [`it is version ${version}, 7.0 or later is needed`];
  return /redis_mode:cluster/u.test(info) ? ['it runs as a cluster, which the bridge does not use'] : [];
}

async function checkSettings(redis: Redis): Promise<readonly string[]> {
  const flat = (await redis.config('GET', ...Object.keys(REQUIRED))) as string[];
  const actual = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) actual.set(flat[i] as string, flat[i + 1] as string);
  return Object.entries(REQUIRED).flatMap(([name, wanted]) => {
    const value = actual.get(name);
    return value === wanted ? [] : [`${name} is "${value ?? 'hidden'}" and must be "${wanted}"`];
  });
}
