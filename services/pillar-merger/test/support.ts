import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  AUDIT_STREAM,
  type AuditEvent,
  BOOTSTRAP_SUB,
  type BridgeReply,
  collectionTarget,
  decode,
  deriveGrantKey,
  GRANT_AUDIENCE,
  type GrantAct,
  kmsIssueMaster,
  kmsSeal,
  masterAclRules,
  masterRedisUser,
  mergerAclRules,
  minionTarget,
  type ResolvedTarget,
  rootTarget,
  startCall,
  zAuditEvent,
} from '@colonnade/contracts';
import { type BridgeClient, connectBridge, type ServiceProcess, startService } from '@colonnade/embedded';
import type { RedisServer } from '@colonnade/embedded/servers';
import { type EstateStore, type MasterRecord, type Mutation, openSqliteStore } from '@colonnade/estate-store';
import { fromPlain, toPlain, type Value } from '@colonnade/value';
import { Redis } from 'ioredis';
import { SignJWT } from 'jose';
import { type RealBus, startRealBus } from '../../../test/support/real-bus.ts';
import { redisForTests } from '../../../test/support/servers.ts';
import { tempDir } from '../../../test/support/temp.ts';

export const call = (budgetMs = 5000) => startCall(budgetMs);

export type TestMaster = { id: string; token: string; tokenId: string; client: BridgeClient };

/** Real servers, a real crypto-kms and the estate, which the test writes itself; mergers are started by the test. */
export type World = AsyncDisposable & {
  bus: RealBus;
  redis: RedisServer;
  kms: ServiceProcess;
  store: EstateStore;
  storePath: string;
  /** As the administrator of Redis. */
  admin: Redis;
  startMerger(env?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  write(...mutations: readonly Mutation[]): Promise<number>;
  /** A master with a token of the KMS and a user of Redis. */
  addMaster(id: string, more?: Partial<Pick<MasterRecord, 'envs' | 'onUnknownMinion'>>): Promise<TestMaster>;
  putMaster(master: MasterFields): Promise<number>;
  /** The Redis user of a master is gone after a restart. */
  admit(master: string): Promise<void>;
  addMinion(master: string, id: string, collections?: readonly string[]): Promise<number>;
  addCollection(id: string, parentId?: string, owner?: string): Promise<number>;
  addPillar(target: ResolvedTarget, name: string, value: unknown): Promise<string>;
  addSecret(target: ResolvedTarget, name: string, value: unknown): Promise<string>;
  issueToken(master: string, lifetimeS?: number): Promise<{ token: string; jti: string }>;
  records(): Promise<readonly AuditEvent[]>;
};

export type MasterFields = Omit<MasterRecord, 'tick'>;

export { collectionTarget, minionTarget, rootTarget };

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
  const masterPassword = randomBytes(12).toString('hex');
  const redis = owned.use(
    await redisForTests({
      aclUsers: [`user ${REDIS_USER} ${mergerAclRules(mergerPassword).join(' ')}`],
      extraConfig,
    }),
  );
  const adminToken = `col_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}`;
  const kms = owned.use(await startKms(dir, bus, adminToken));
  const storePath = path.join(dir, 'estate.sqlite');
  const store = owned.use(await openSqliteStore({ path: storePath }));
  const admin = new Redis({
    host: redis.host,
    port: redis.port,
    username: redis.adminUser,
    password: redis.adminPassword,
  });
  admin.on('error', () => {});
  owned.defer(() => admin.disconnect());
  const api = await bus.as('pillar-api');

  const write = async (...mutations: readonly Mutation[]) => {
    const { clock } = await store.write({ mutations, events: [], by: 'test', atMs: Date.now() });
    return clock.tick;
  };
  const putMaster = (record: MasterFields) =>
    write({ kind: 'master.put', expect: undefined, record: record });
  const admit = async (master: string) => {
    await admin.call('ACL', 'SETUSER', masterRedisUser(master), ...masterAclRules(master, masterPassword));
  };
  const issueToken = async (master: string, lifetimeS = 3600) => {
    const grant = await signGrant(adminToken, 'master.issue', master);
    return api.request(kmsIssueMaster, { grant, master, lifetime_s: lifetimeS }, call());
  };
  const putPillar = async (target: ResolvedTarget, name: string, value: Value, isSecret: boolean) => {
    const pid = randomUUID();
    await write({ kind: 'pillar.create', record: { pid, ...target, name, value, isSecret } });
    return pid;
  };
  let mergers = 0;

  return {
    ...{ bus, redis, kms, store, storePath, admin, write, putMaster, admit, issueToken },
    async startMerger(env = {}) {
      mergers += 1;
      const merger = await startService({
        name: 'pillar-merger',
        portVariable: 'OPS_PORT',
        logFile: path.join(dir, `merger-${mergers}.log`),
        env: {
          STORE_PATH: storePath,
          REDIS_URL: redis.url,
          REDIS_USER,
          REDIS_PASSWORD: mergerPassword,
          NATS_URL: bus.nats.url,
          NATS_PASSWORD: bus.passwordOf('pillar-merger'),
          OPS_PORT: '0',
          ...env,
        },
      });
      return owned.use(merger);
    },
    async addMaster(id, more = {}) {
      await admit(id);
      const { token, jti } = await issueToken(id);
      const record: MasterFields = { id, envs: [], tokenIds: [jti], onUnknownMinion: 'refuse', ...more };
      await write({ kind: 'master.put', expect: 'absent', record });
      const { host, port } = redis;
      const username = masterRedisUser(id);
      const client = connectBridge({ host, port, username, password: masterPassword, master: id, token });
      return { id, token, tokenId: jti, client: owned.use(client) };
    },
    addMinion: (master, id, collections = []) =>
      write({
        kind: 'minion.put',
        expect: 'absent',
        record: { master, id, collections, registeredBy: 'test' },
      }),
    addCollection: (id, parentId, owner = 'ann') =>
      write({ kind: 'collection.put', expect: 'absent', record: { id, name: id, parentId, owner } }),
    addPillar: (target, name, value) => putPillar(target, name, fromPlain(value), false),
    async addSecret(target, name, value) {
      const { tgtType: tgt_type, tgtId: tgt_id, pillarenv } = target;
      const context = { tgt_type, tgt_id, pillarenv, name };
      const answer = await api.request(kmsSeal, { items: [{ context, value: fromPlain(value) }] }, call());
      const [item] = answer.items;
      if (item?.ok !== true) throw new Error('not sealed');
      return putPillar(target, name, fromPlain(item.result), true);
    },
    records: () => readRecords(bus),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
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
      NATS_PASSWORD: bus.passwordOf('crypto-kms'),
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
    records.push(decode(zAuditEvent, Buffer.from(data, 'base64')));
  }
  await witness.close();
  return records;
}

/** The pillar of a good reply as ordinary data, or the code of a bad one. */
export function outcomeOf(reply: BridgeReply): unknown {
  return reply.ok ? toPlain(reply.pillar) : reply.error.code;
}
