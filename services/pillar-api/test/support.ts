import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { AUDIT_STREAM, type AuditEvent, auditSubject, decodeAuditMessage } from '@colonnade/contracts';
import {
  type ApiAnswer,
  type ApiClient,
  createApiClient,
  type ServiceProcess,
  startService,
} from '@colonnade/embedded';
import { fromPlain, toPlain } from '@colonnade/value';
import {
  type NatsConnection,
  type RealBus,
  type RealBusOptions,
  startRealBus,
} from '../../../test/support/real-bus.ts';
import { tempDir } from '../../../test/support/temp.ts';

/** A real nats-server, a real crypto-kms and one or more real pillar-api, each a process of its own. */
export type ApiWorld = AsyncDisposable & {
  bus: RealBus;
  dir: string;
  storePath: string;
  kms: ServiceProcess;
  api: ServiceProcess;
  adminToken: string;
  admin: ApiClient;
  /** One more pillar-api on the same store. */
  startApi(env?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  /** A token with these roles, made by the admin; `sub` is "<roles>" unless given. */
  tokenOf(roles: readonly string[], sub?: string): Promise<{ id: string; token: string }>;
  as(roles: readonly string[], sub?: string): Promise<ApiClient>;
  /** A client with roles for a part of the estate only. */
  scoped(scopedRoles: readonly object[], sub?: string): Promise<ApiClient>;
};

export async function startWorld(
  options: {
    env?: Readonly<Record<string, string>>;
    kmsEnv?: Readonly<Record<string, string>>;
    bus?: RealBusOptions;
  } = {},
): Promise<ApiWorld> {
  await using stack = new AsyncDisposableStack();
  const { path: dir } = stack.use(await tempDir('api'));
  const bus = stack.use(await startRealBus(options.bus));
  const adminToken = `col_${randomBytes(8).toString('hex')}_${randomBytes(32).toString('base64url')}`;
  const tokenFile = path.join(dir, 'bootstrap-token');
  await writeFile(tokenFile, `${adminToken}\n`, { mode: 0o600 });
  const storePath = path.join(dir, 'estate.sqlite');
  const kms = stack.use(
    await startService({
      name: 'crypto-kms',
      portVariable: 'OPS_PORT',
      logFile: path.join(dir, 'crypto-kms.log'),
      env: {
        PILLARS_KEK_B64: randomBytes(32).toString('base64'),
        KMS_ROOT_KEY_B64: randomBytes(32).toString('base64'),
        KMS_STATE_DIR: path.join(dir, 'kms'),
        BOOTSTRAP_TOKEN_FILE: tokenFile,
        NATS_URL: bus.nats.url,
        NATS_NKEY_SEED: bus.nkeySeedOf('crypto-kms'),
        ...options.kmsEnv,
      },
    }),
  );
  let started = 0;
  const later = stack.use(new AsyncDisposableStack());
  const startApi = async (env: Readonly<Record<string, string>> = {}) => {
    started += 1;
    const process = await startService({
      name: 'pillar-api',
      portVariable: 'HTTP_PORT',
      logFile: path.join(dir, `pillar-api-${started}.log`),
      env: {
        STORE_PATH: storePath,
        BOOTSTRAP_TOKEN_FILE: tokenFile,
        NATS_URL: bus.nats.url,
        NATS_NKEY_SEED: bus.nkeySeedOf('pillar-api'),
        HTTP_PORT: '0',
        LOG_LEVEL: 'debug',
        // Most tests have no hook-runner.
        DELETION_HOOKS: 'off',
        ...options.env,
        ...env,
      },
    });
    return later.use(process);
  };
  const api = await startApi();
  const admin = createApiClient(api.url, adminToken);
  const tokenOf: ApiWorld['tokenOf'] = async (roles, sub = roles.join('-')) => {
    const answer = await admin.call('POST', '/tokens', fromPlain({ sub, roles: [...roles] }));
    return plain(answer) as { id: string; token: string };
  };
  const owned = stack.move();
  return {
    ...{ bus, dir, storePath, kms, api, adminToken, admin, startApi, tokenOf },
    scoped: async (scopedRoles, sub = 'scoped') => {
      const body = fromPlain({ sub, scoped_roles: [...scopedRoles] });
      const { token } = plain(await admin.call('POST', '/tokens', body)) as { token: string };
      return createApiClient(api.url, token);
    },
    as: async (roles, sub) => createApiClient(api.url, (await tokenOf(roles, sub)).token),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The body of an answer as ordinary data. */
export function plain(answer: ApiAnswer): Record<string, unknown> {
  return toPlain(answer.value ?? null) as Record<string, unknown>;
}

/** Sends ordinary data. */
export function sendPlain(
  client: ApiClient,
  method: string,
  url: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<ApiAnswer> {
  return client.send(method, url, body === undefined ? undefined : fromPlain(body), headers);
}

/** Asserts the shape of RFC 9457 with this status and code. */
export function assertProblem(answer: ApiAnswer, status: number, code: string, field?: string): void {
  const problem = plain(answer);
  assert.deepEqual([answer.status, problem.code], [status, code], JSON.stringify(problem));
  assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/u);
  assert.equal(problem.status, status);
  assert.equal(problem.type, `urn:colonnade:error:${code}`);
  for (const text of [problem.title, problem.detail]) assert.equal(typeof text, 'string');
  assert.match(String(problem.instance), /^urn:uuid:[0-9a-f-]{36}$/u);
  if (field !== undefined) assert.equal(problem.field, field, JSON.stringify(problem));
}

/** The ETag an answer came with. */
export function etagOfAnswer(answer: ApiAnswer): string {
  const etag = answer.headers.get('etag');
  assert.ok(etag !== null, `no ETag in an answer with status ${answer.status}`);
  return etag;
}

type Stored = { subject: string; data: Buffer };
/** What was read of a stream before: streams only grow, so each message is read once. */
const seenOf = new WeakMap<RealBus, { witness: Promise<NatsConnection>; streams: Map<string, Stored[]> }>();

/** Everything that is in a stream now, oldest first. */
export async function readStream(bus: RealBus, stream: string): Promise<readonly Stored[]> {
  const seen = seenOf.get(bus) ?? { witness: bus.witness(), streams: new Map() };
  seenOf.set(bus, seen);
  const witness = await seen.witness;
  const found = seen.streams.get(stream) ?? [];
  seen.streams.set(stream, found);
  const info = await witness.request(`$JS.API.STREAM.INFO.${stream}`);
  const { messages } = info.json<{ state: { messages: number } }>().state;
  const read = async (seq: number): Promise<Stored> => {
    const answer = await witness.request(`$JS.API.STREAM.MSG.GET.${stream}`, JSON.stringify({ seq }));
    const { subject, data } = answer.json<{ message: { subject: string; data: string } }>().message;
    return { subject, data: Buffer.from(data, 'base64') };
  };
  const from = found.length;
  const added = await Promise.all(Array.from({ length: messages - from }, (_, i) => read(from + i + 1)));
  if (found.length === from) found.push(...added);
  return [...found];
}

/** The audit records of pillar-api that are stored now. */
export async function auditRecords(bus: RealBus): Promise<AuditEvent[]> {
  const messages = await readStream(bus, AUDIT_STREAM);
  return messages
    .filter((m) => m.subject === auditSubject('pillar-api'))
    .flatMap((m) => [...decodeAuditMessage(m.data)]);
}
