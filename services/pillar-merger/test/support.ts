import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  AUDIT_STREAM,
  type AuditEvent,
  BOOTSTRAP_SUB,
  type BridgeReply,
  decodeAuditMessage,
  deriveGrantKey,
  GRANT_AUDIENCE,
  type GrantAct,
  grantResource,
  kmsIssueMaster,
  masterAclRules,
  masterRedisUser,
  mergerAclRules,
} from '@colonnade/contracts';
import { type BridgeClient, connectBridge, type ServiceProcess, startService } from '@colonnade/embedded';
import type { RedisServer } from '@colonnade/embedded/servers';
import { type EstateStore, type MasterRecord, openSqliteStore } from '@colonnade/estate-store';
import { toPlain } from '@colonnade/value';
import { Redis } from 'ioredis';
import { SignJWT } from 'jose';
import { type RealBus, startRealBus } from '../../../test/support/real-bus.ts';
import { redisForTests } from '../../../test/support/servers.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { call, createEstateWriter, type EstateWriter, type MasterFields } from './support-estate.ts';

export { call };

export type TestMaster = { id: string; token: string; tokenId: string; client: BridgeClient };

/** Real servers, a real crypto-kms and the estate, which the test writes itself; mergers are started by the test. */
export type World = AsyncDisposable &
  EstateWriter & {
    bus: RealBus;
    redis: RedisServer;
    kms: ServiceProcess;
    store: EstateStore;
    storePath: string;
    /** As the administrator of Redis. */
    admin: Redis;
    startMerger(env?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
    /** A master with a token of the KMS and a user of Redis. */
    addMaster(
      id: string,
      more?: Partial<Pick<MasterRecord, 'envs' | 'onUnknownMinion'>>,
    ): Promise<TestMaster>;
    /** Of every master's Redis user. */
    masterPassword: string;
    /** The Redis user of a master is gone after a restart. */
    admit(master: string): Promise<void>;
    records(): Promise<readonly AuditEvent[]>;
  };

export { collectionTarget, minionTarget, rootTarget } from '@colonnade/contracts';

const REDIS_USER = 'pillar-merger';

export async function startWorld(options: { redisConfig?: string } = {}): Promise<World> {
  const owned = new AsyncDisposableStack();
  try {
    return await buildWorld(owned, options.redisConfig ?? '');
  } catch (error) {
    await owned.disposeAsync();
    throw error;
  }
}

async function buildWorld(owned: AsyncDisposableStack, extraConfig: string): Promise<World> {
  const dir = owned.use(await tempDir('merger')).path;
  const bus = owned.use(await startRealBus());
  const mergerPassword = randomBytes(12).toString('hex');
  const aclUsers = [`user ${REDIS_USER} ${mergerAclRules(mergerPassword).join(' ')}`];
  const redis = owned.use(await redisForTests({ aclUsers, extraConfig }));
  const adminToken = `col_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}`;
  const kms = owned.use(await startKms(dir, bus, adminToken));
  const storePath = path.join(dir, 'estate.sqlite');
  const store = owned.use(await openSqliteStore({ path: storePath }));
  const admin = connectAdmin(redis);
  owned.defer(() => admin.disconnect());
  const api = await bus.as('pillar-api');
  const estate = createEstateWriter(store, api);
  const issueToken = async (master: string, lifetimeS = 3600) => {
    const asked = { master, lifetime_s: lifetimeS };
    const grant = await signGrant(adminToken, 'master.issue', grantResource(kmsIssueMaster, asked));
    return api.request(kmsIssueMaster, { ...asked, grant }, call());
  };
  const env = {
    STORE_PATH: storePath,
    ...{ REDIS_URL: redis.url, REDIS_USER, REDIS_PASSWORD: mergerPassword },
    ...{ NATS_URL: bus.nats.url, NATS_NKEY_SEED: bus.nkeySeedOf('pillar-merger') },
    OPS_PORT: '0',
  };
  return {
    ...{ bus, redis, kms, store, storePath, admin, ...estate },
    ...createMasters({ redis, admin, estate, issueToken, owned }),
    startMerger: createMergerStarter(dir, env, owned),
    records: () => readRecords(bus),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function connectAdmin({ host, port, adminUser: username, adminPassword: password }: RedisServer): Redis {
  const admin = new Redis({ host, port, username, password });
  admin.on('error', () => {});
  return admin;
}

function createMergerStarter(dir: string, common: Record<string, string>, owned: AsyncDisposableStack) {
  let mergers = 0;
  return async (env: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> => {
    mergers += 1;
    const logFile = path.join(dir, `merger-${mergers}.log`);
    const merger = await startService({
      name: 'pillar-merger',
      portVariable: 'OPS_PORT',
      logFile,
      env: { ...common, ...env },
    });
    return owned.use(merger);
  };
}

type MasterParts = {
  redis: RedisServer;
  admin: Redis;
  estate: EstateWriter;
  issueToken: (master: string) => Promise<{ token: string; jti: string }>;
  owned: AsyncDisposableStack;
};

function createMasters({ redis, admin, estate, issueToken, owned }: MasterParts) {
  const password = randomBytes(12).toString('hex');
  const admit = async (master: string) => {
    await admin.call('ACL', 'SETUSER', masterRedisUser(master), ...masterAclRules(master, password));
  };
  return {
    admit,
    masterPassword: password,
    async addMaster(
      id: string,
      more: Partial<Pick<MasterRecord, 'envs' | 'onUnknownMinion'>> = {},
    ): Promise<TestMaster> {
      await admit(id);
      const { token, jti } = await issueToken(id);
      const record: MasterFields = { id, envs: [], tokenIds: [jti], onUnknownMinion: 'refuse', ...more };
      await estate.write({ kind: 'master.put', expect: 'absent', record });
      const { host, port } = redis;
      const client = connectBridge({
        host,
        port,
        username: masterRedisUser(id),
        password,
        master: id,
        token,
      });
      return { id, token, tokenId: jti, client: owned.use(client) };
    },
  };
}

async function startKms(dir: string, bus: RealBus, adminToken: string): Promise<ServiceProcess> {
  const tokenFile = path.join(dir, 'admin-token');
  await writeFile(tokenFile, adminToken, { mode: 0o600 });
  return startService({
    name: 'crypto-kms',
    portVariable: 'OPS_PORT',
    logFile: path.join(dir, 'kms.log'),
    env: {
      KMS_STATE_DIR: path.join(dir, 'kms'),
      PILLARS_KEK_B64: randomBytes(32).toString('base64'),
      BOOTSTRAP_TOKEN_FILE: tokenFile,
      NATS_URL: bus.nats.url,
      NATS_NKEY_SEED: bus.nkeySeedOf('crypto-kms'),
      OPS_PORT: '0',
    },
  });
}

/** A grant as pillar-api makes one while it has the admin's token in hand. */
async function signGrant(apiToken: string, act: GrantAct, res: string): Promise<string> {
  const iat = Math.floor(Date.now() / 1000);
  return new SignJWT({
    aud: GRANT_AUDIENCE,
    sub: BOOTSTRAP_SUB,
    act,
    res,
    jti: randomUUID(),
    iat,
    exp: iat + 30,
  })
    .setProtectedHeader({ alg: 'HS256', kid: String(apiToken.split('_')[1]) })
    .sign(deriveGrantKey(apiToken));
}

/** What is on record now. */
async function readRecords(bus: RealBus): Promise<readonly AuditEvent[]> {
  const witness = await bus.witness();
  const info = await witness.request(`$JS.API.STREAM.INFO.${AUDIT_STREAM}`);
  const { messages } = info.json<{ state: { messages: number } }>().state;
  const records: AuditEvent[] = [];
  for (let seq = 1; seq <= messages; seq += 1) {
    const answer = await witness.request(`$JS.API.STREAM.MSG.GET.${AUDIT_STREAM}`, JSON.stringify({ seq }));
    const { data } = answer.json<{ message: { data: string } }>().message;
    records.push(...decodeAuditMessage(Buffer.from(data, 'base64')));
  }
  await witness.close();
  return records;
}

/** The pillar of a good reply as ordinary data, or the code of a bad one. */
export function outcomeOf(reply: BridgeReply): unknown {
  return reply.ok ? toPlain(reply.pillar) : reply.error.code;
}
