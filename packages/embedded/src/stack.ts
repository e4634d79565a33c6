import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectBus, publicKeysOf, renderNatsConfig } from '@colonnade/bus';
import { ColonnadeError, mergerAclRules } from '@colonnade/contracts';
import { type InstallationSecrets, loadSecrets } from './secrets.ts';
import {
  findNatsServer,
  findRedisServer,
  type NatsServer,
  type RedisServer,
  startNats,
  startRedis,
} from './servers/index.ts';
import type { Report } from './servers/tools.ts';
import { type ServiceProcess, startService } from './service-process.ts';

export type StackOptions = {
  /** Everything of this installation: secrets, store, streams, logs. */
  dir: string;
  /** Told each step, for a person who waits. */
  report: Report;
  mergers?: number;
  /** Port of pillar-api's HTTP; 0: any free one. */
  httpPort?: number;
  /** Audit policy of all services; kubeconfig file of the webhook beside the log. Absolute paths. */
  auditPolicyFile?: string | undefined;
  auditWebhookFile?: string | undefined;
  /** More environment: for all services, or what a function says for each. */
  env?: ServiceEnv | ((service: LaunchedService) => Promise<ServiceEnv>);
  /** Off only where a test restarts nothing: an acknowledged message then survives a power cut. */
  syncAlways?: boolean;
};

type ServiceEnv = Readonly<Record<string, string>>;

/** A service that is about to start, and the servers it would talk to. */
export type LaunchedService = {
  name: ServiceProcess['name'];
  /** Of several mergers, from 1; 0 for the others. */
  index: number;
  nats: NatsServer;
  redis: RedisServer;
};

/** Redis user of the mergers. */
const REDIS_MERGER_USER = 'pillar-merger';
const MIB = 1024 * 1024;
const READY_LIMIT_MS = 20_000;

/** A whole Colonnade on one host: real servers and the services as child processes, which end with this one. */
export type Stack = AsyncDisposable & {
  dir: string;
  storePath: string;
  secrets: InstallationSecrets;
  nats: NatsServer;
  redis: RedisServer;
  kms: ServiceProcess;
  sink: ServiceProcess;
  hooks: ServiceProcess;
  /** A folder of hooks for each event. */
  hooksDir: string;
  /** The audit log: one event a line. */
  auditLog: string;
  api: ServiceProcess;
  mergers: ServiceProcess[];
  /** One more merger of the group. */
  startMerger(): Promise<ServiceProcess>;
};

/** Starts everything in the order of need. @throws ColonnadeError when a part does not start; what ran is stopped */
export async function startStack(options: StackOptions): Promise<Stack> {
  await using started = new AsyncDisposableStack();
  const { dir, report } = options;
  const logs = path.join(dir, 'logs');
  await mkdir(logs, { recursive: true, mode: 0o700 });
  const secrets = await loadSecrets(path.join(dir, 'secrets'));
  const nats = started.use(await launchNats(options, secrets));
  report(`nats-server on ${nats.url}`);
  const redis = started.use(await launchRedis(options, secrets));
  report(`redis-server on ${redis.url}`);
  await provision(nats, secrets, options.auditWebhookFile !== undefined);

  const launch = async (
    name: 'crypto-kms' | 'audit-sink' | 'hook-runner' | 'pillar-api' | 'pillar-merger',
    env: Record<string, string>,
    index = 0,
  ) => {
    const more =
      typeof options.env === 'function' ? await options.env({ name, index, nats, redis }) : options.env;
    return await startService({
      name,
      portVariable: name === 'pillar-api' ? 'HTTP_PORT' : 'OPS_PORT',
      logFile: path.join(logs, index === 0 ? `${name}.log` : `${name}-${index}.log`),
      env: { ...common(name, nats, secrets), ...policyEnv(options), ...env, ...more },
    });
  };
  const storePath = path.join(dir, 'estate', 'estate.sqlite');
  const kms = started.use(await launch('crypto-kms', kmsEnv(dir, secrets)));
  report(`crypto-kms on ${kms.url}`);
  const auditLog = path.join(dir, 'audit', 'audit.log');
  const sink = started.use(await launch('audit-sink', sinkEnv(auditLog, options.auditWebhookFile)));
  report(`audit-sink on ${sink.url}`);
  const hooksDir = path.join(dir, 'hooks.d');
  const hooks = started.use(await launch('hook-runner', hooksEnv(dir, hooksDir)));
  report(`hook-runner on ${hooks.url}`);
  const api = started.use(await launch('pillar-api', apiEnv(storePath, secrets, options.httpPort ?? 0)));
  report(`pillar-api on ${api.url}`);
  const mergers: ServiceProcess[] = [];
  const startMerger = async () => {
    const merger = await launch('pillar-merger', mergerEnv(storePath, redis, secrets), mergers.length + 1);
    mergers.push(started.use(merger));
    report(`pillar-merger on ${merger.url}`);
    return merger;
  };
  for (let i = 0; i < (options.mergers ?? 1); i++) await startMerger();
  for (const service of [kms, api, ...mergers]) await untilReady(service);
  const owned = started.move();
  // A merger that is started later must be stopped too, so it is kept apart from what has moved.
  const later = new AsyncDisposableStack();
  return {
    ...{ dir, storePath, secrets, nats, redis, kms, sink, auditLog, hooks, hooksDir, api, mergers },
    async startMerger() {
      const merger = await launch('pillar-merger', mergerEnv(storePath, redis, secrets), mergers.length + 1);
      mergers.push(later.use(merger));
      return merger;
    },
    async [Symbol.asyncDispose]() {
      await later.disposeAsync();
      await owned.disposeAsync();
    },
  };
}

/** A service says that it runs before its neighbours have been reached; what comes next needs them. */
async function untilReady({ name, url, logFile }: ServiceProcess): Promise<void> {
  const deadline = performance.now() + READY_LIMIT_MS;
  for (;;) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    if (answer?.ok) return;
    if (performance.now() > deadline) {
      const why = (await answer?.text()) ?? 'no answer';
      throw new ColonnadeError('unavailable', `${name} does not get ready: ${why}; its log: ${logFile}`);
    }
    await delay(25);
  }
}

async function launchNats(options: StackOptions, secrets: InstallationSecrets): Promise<NatsServer> {
  const { path: binary } = await findNatsServer({ report: options.report });
  const configText = renderNatsConfig({
    host: '127.0.0.1',
    port: -1,
    publicKeys: publicKeysOf(secrets.busNkeys),
    syncAlways: options.syncAlways ?? true,
    maxFileBytes: 4096 * MIB,
  });
  return startNats({ binary, dir: path.join(options.dir, 'nats'), configText });
}

async function launchRedis(options: StackOptions, secrets: InstallationSecrets): Promise<RedisServer> {
  const { path: binary } = await findRedisServer({ report: options.report });
  const merger = `user ${REDIS_MERGER_USER} ${mergerAclRules(secrets.redisMergerPassword).join(' ')}`;
  return startRedis({
    binary,
    dir: path.join(options.dir, 'redis'),
    adminPassword: secrets.redisAdminPassword,
    aclUsers: [merger],
  });
}

/** Makes the streams, as the only user that may. */
async function provision(
  nats: NatsServer,
  secrets: InstallationSecrets,
  auditWebhook: boolean,
): Promise<void> {
  const silent = { info: () => {}, warn: () => {}, error: () => {} };
  await using bus = await connectBus({
    servers: nats.url,
    user: 'provisioner',
    nkeySeed: secrets.busNkeys.provisioner.seed,
    name: 'provisioner',
    logger: silent,
  });
  const sizes = { maxEventsBytes: 256 * MIB, maxAuditBytes: 2048 * MIB };
  await bus.provisionStreams({ ...sizes, replicas: 1, auditWebhook });
}

function common(name: ServiceProcess['name'], nats: NatsServer, secrets: InstallationSecrets) {
  return { NATS_URL: nats.url, NATS_NKEY_SEED_FILE: secrets.busNkeyFiles[name] };
}

function kmsEnv(dir: string, secrets: InstallationSecrets) {
  return {
    KMS_STATE_DIR: path.join(dir, 'kms'),
    PILLARS_KEK_FILE: secrets.kekFile,
    KMS_ROOT_KEY_FILE: secrets.rootKeyFile,
    BOOTSTRAP_TOKEN_FILE: secrets.adminTokenFile,
    OPS_HOST: '127.0.0.1',
    OPS_PORT: '0',
  };
}

function policyEnv({ auditPolicyFile: file }: StackOptions): Record<string, string> {
  return file === undefined ? {} : { AUDIT_POLICY_FILE: file };
}

function sinkEnv(auditLog: string, webhook: string | undefined): Record<string, string> {
  const env = { AUDIT_LOG_PATH: auditLog, OPS_HOST: '127.0.0.1', OPS_PORT: '0' };
  return webhook === undefined ? env : { ...env, AUDIT_WEBHOOK_CONFIG_FILE: webhook };
}

function hooksEnv(dir: string, hooksDir: string) {
  const stateDir = path.join(dir, 'hooks');
  return { HOOKS_DIR: hooksDir, HOOKS_STATE_DIR: stateDir, OPS_HOST: '127.0.0.1', OPS_PORT: '0' };
}

function apiEnv(storePath: string, secrets: InstallationSecrets, httpPort: number) {
  return {
    STORE_PATH: storePath,
    BOOTSTRAP_TOKEN_FILE: secrets.adminTokenFile,
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: String(httpPort),
  };
}

function mergerEnv(storePath: string, redis: RedisServer, secrets: InstallationSecrets) {
  return {
    STORE_PATH: storePath,
    REDIS_URL: redis.url,
    REDIS_USER: REDIS_MERGER_USER,
    REDIS_PASSWORD_FILE: secrets.redisMergerPasswordFile,
    OPS_HOST: '127.0.0.1',
    OPS_PORT: '0',
  };
}
