import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ApiClient } from '@colonnade/api-client';
import { ColonnadeError, masterAclRules, masterRedisUser } from '@colonnade/contracts';
import { fromPlain, toPlain, type Value } from '@colonnade/value';
import { Redis } from 'ioredis';
import { writeSecret } from '../secrets.ts';
import type { RedisServer } from '../servers/index.ts';
import { sampleCollections, sampleMasters, sampleMinions, samplePillars } from './estate.ts';

/** What a Salt master needs to ask: its place on the bridge and its token. */
export type MasterCredentials = {
  master: string;
  redisUser: string;
  redisPassword: string;
  redisAclRules: readonly string[];
  token: string;
};

/**
 * Loads the sample estate into a new installation, through the API as an operator would, and lets its masters into Redis.
 * Once it was loaded whole it is never loaded again: from then on the estate is its owner's to change.
 * @param dir keeps the masters' credentials and a mark
 */
export async function loadSample(
  api: ApiClient,
  redis: RedisServer,
  dir: string,
): Promise<Map<string, MasterCredentials>> {
  const mark = path.join(dir, 'loaded');
  if (!existsSync(mark)) {
    await loadEstate(api, dir);
    await writeSecret(mark, new Date().toISOString());
  }
  const credentials = new Map<string, MasterCredentials>();
  for (const { id } of sampleMasters) {
    const known = await readMaster(dir, id);
    if (known !== undefined) credentials.set(id, known);
  }
  for (const one of credentials.values()) await admitMaster(redis, one);
  return credentials;
}

async function loadEstate(api: ApiClient, dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  for (const { id, envs } of sampleMasters) {
    if ((await readMaster(dir, id)) !== undefined) continue;
    const made = await registerOrRenew(api, id, envs);
    await writeSecret(path.join(dir, `${id}.json`), JSON.stringify(made, undefined, 2));
  }
  for (const one of sampleCollections) {
    const { parentId, ...rest } = one;
    await make(api, 'POST', '/collections', {
      ...rest,
      ...(parentId === undefined ? {} : { parent_id: parentId }),
    });
  }
  for (const { master, id, collections } of sampleMinions) {
    const body = { collections: [...collections] };
    await make(api, 'PUT', `/masters/${master}/minions/${encodeURIComponent(id)}`, body, {
      'if-none-match': '*',
    });
  }
  for (const { target, ...pillar } of samplePillars)
    await make(api, 'POST', '/pillars', { ...target, ...pillar });
}

async function readMaster(dir: string, id: string): Promise<MasterCredentials | undefined> {
  const file = path.join(dir, `${id}.json`);
  return existsSync(file) ? (JSON.parse(await readFile(file, 'utf8')) as MasterCredentials) : undefined;
}

/** Registers a master; its token and password are shown this once. @throws ColonnadeError */
export async function registerMaster(
  api: ApiClient,
  id: string,
  envs: readonly string[],
): Promise<MasterCredentials> {
  const answer = await api.call('POST', '/masters', fromPlain({ id, envs: [...envs] }));
  const made = toPlain(answer.value as Value) as {
    token: { token: string };
    bridge: { redis_user: string; redis_password: string; redis_acl_rules: string[] };
  };
  return {
    master: id,
    redisUser: made.bridge.redis_user,
    redisPassword: made.bridge.redis_password,
    redisAclRules: made.bridge.redis_acl_rules,
    token: made.token.token,
  };
}

/** A start that was cut off after the registration lost what is shown only once: then it is made anew. */
async function registerOrRenew(
  api: ApiClient,
  id: string,
  envs: readonly string[],
): Promise<MasterCredentials> {
  try {
    return await registerMaster(api, id, envs);
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || thrown.code !== 'already_exists') throw thrown;
  }
  const answer = await api.call('POST', `/masters/${id}/tokens`);
  const { token } = toPlain(answer.value as Value) as { token: string };
  const redisPassword = randomBytes(32).toString('base64url');
  const redisAclRules = masterAclRules(id, redisPassword);
  return { master: id, redisUser: masterRedisUser(id), redisPassword, redisAclRules, token };
}

/** What an operator does once for each master: its Redis user, with exactly the rights the API named. */
export async function admitMaster(redis: RedisServer, credentials: MasterCredentials): Promise<void> {
  const admin = new Redis({
    host: redis.host,
    port: redis.port,
    username: redis.adminUser,
    password: redis.adminPassword,
    maxRetriesPerRequest: 1,
  });
  try {
    await admin.call('ACL', 'SETUSER', credentials.redisUser, ...credentials.redisAclRules);
    await admin.call('ACL', 'SAVE');
  } finally {
    admin.disconnect();
  }
}

/** Creates; what is there already is left as it is. */
async function make(
  api: ApiClient,
  method: string,
  path: string,
  body: object,
  headers?: Record<string, string>,
): Promise<void> {
  await api.call(method, path, fromPlain(body), headers).catch((thrown) => {
    const exists =
      thrown instanceof ColonnadeError && ['already_exists', 'precondition_failed'].includes(thrown.code);
    if (!exists) throw thrown;
  });
}
