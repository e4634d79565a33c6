import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  type ApiClient,
  admitMaster,
  type BridgeClient,
  connectBridge,
  createApiClient,
  type LaunchedService,
  registerMaster,
  type Stack,
  startStack,
} from '@colonnade/embedded';
import type { RunningServer } from '@colonnade/embedded/servers';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { mongoForTests, type TestMongo } from '../support/mongo.ts';
import { tempDir } from '../support/temp.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Link, openLink } from './link.ts';
import type { Targets } from './schedule.ts';

export type StoreKind = 'sqlite' | 'mongo';

/** A whole Colonnade in which every process and every connection between two of them can be taken away. */
export type System = AsyncDisposable & {
  stack: Stack;
  parts: ReadonlyMap<string, RunningServer>;
  links: ReadonlyMap<string, Link>;
  targets: Targets;
  /** As operators reach it, over a link. */
  api: ApiClient;
  /** Past the link, for what is looked at afterwards. */
  directApi: ApiClient;
  /** A master's side of the bridge, over a link. */
  addMaster(id: string): Promise<BridgeClient>;
  /** A connection to NATS that may do everything, past the links. */
  witness: NatsConnection;
  /** Every folder into which any part writes. */
  folders: readonly string[];
};

const MERGERS = 2;
/** An answer that takes longer is none: longer than any request may wait for other services. */
const HTTP_LIMIT_MS = 8000;
const WITNESS = 'witness-of-the-faults';

export async function startSystem(store: StoreKind): Promise<System> {
  const started = new AsyncDisposableStack();
  try {
    return await start(store, started);
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}

/** @param started owns everything, also what is opened later */
async function start(store: StoreKind, started: AsyncDisposableStack): Promise<System> {
  const dir = started.use(await tempDir('faults')).path;
  const temporary = path.join(dir, 'tmp');
  await mkdir(temporary);
  const mongo = store === 'mongo' ? started.use(await mongoForTests()) : undefined;
  const links = new Map<string, Link>();
  const link = async (name: string, port: number): Promise<Link> => {
    const known = links.get(name);
    if (known !== undefined) return known;
    const made = started.use(await openLink(port));
    links.set(name, made);
    return made;
  };
  const env = createEnv(temporary, mongo, link);
  const stack = started.use(
    await startStack({
      dir: path.join(dir, 'stack'),
      report: () => {},
      // As it is shipped: without it a killed nats-server loses what it has acknowledged and not yet written.
      syncAlways: true,
      mergers: MERGERS,
      env,
    }),
  );
  const witness = await admitWitness(stack);
  started.defer(() => witness.close());
  for (const { name, url } of [stack.kms, stack.sink, stack.hooks, stack.api, ...stack.mergers]) {
    await waitFor(`${name} to be ready`, async () => (await fetch(`${url}/readyz`)).ok, { limitMs: 30_000 });
  }
  const http = await link('operator-api', Number(new URL(stack.api.url).port));
  const { adminToken } = stack.secrets;
  const parts = partsOf(stack, mongo);
  const targets = {
    parts: [...parts.keys()],
    links: [...links.keys(), ...['m1', 'm2'].map((id) => `${id}-redis`)],
    lockable: store === 'sqlite' ? ['estate.sqlite'] : [],
  };
  const directApi = createApiClient(stack.api.url, adminToken);
  const addMaster = async (id: string) => {
    const credentials = await registerMaster(directApi, id, []);
    await admitMaster(stack.redis, credentials);
    const { port } = await link(`${id}-redis`, stack.redis.port);
    const { redisUser: username, redisPassword: password, master, token } = credentials;
    return started.use(connectBridge({ host: '127.0.0.1', port, username, password, master, token }));
  };
  return {
    ...{ stack, parts, links, targets, witness, addMaster, directApi },
    api: createApiClient(`http://127.0.0.1:${http.port}`, adminToken, { timeoutMs: HTTP_LIMIT_MS }),
    folders: [dir, ...(mongo?.server ? [path.dirname(mongo.server.logFile)] : [])],
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** The environment in which a service reaches each of its neighbours over a link of its own. */
function createEnv(
  temporary: string,
  mongo: TestMongo | undefined,
  link: (name: string, port: number) => Promise<Link>,
) {
  const database = mongo?.freshDatabase();
  return async ({ name, index, nats, redis }: LaunchedService): Promise<Record<string, string>> => {
    const own = index === 0 ? name : `${name}-${index}`;
    const env: Record<string, string> = { TMPDIR: temporary };
    env.NATS_URL = `nats://127.0.0.1:${(await link(`${own}-nats`, nats.port)).port}`;
    if (name === 'pillar-merger') {
      env.REDIS_URL = `redis://127.0.0.1:${(await link(`${own}-redis`, redis.port)).port}`;
    }
    if (name === 'pillar-api') env.RELAY_LEASE_MS = '2000';
    if (mongo !== undefined && (name === 'pillar-api' || name === 'pillar-merger')) {
      const { port, searchParams } = new URL(mongo.url);
      const { port: over } = await link(`${own}-store`, Number(port));
      env.STORE_URL = `mongodb://127.0.0.1:${over}/${database}?${searchParams}`;
    }
    return env;
  };
}

function partsOf(stack: Stack, mongo: TestMongo | undefined): ReadonlyMap<string, RunningServer> {
  const parts = new Map<string, RunningServer>([
    ['nats', stack.nats],
    ['redis', stack.redis],
    ['crypto-kms', stack.kms],
    ['audit-sink', stack.sink],
    ['hook-runner', stack.hooks],
    ['pillar-api', stack.api],
    ...stack.mergers.map((merger, i) => [`pillar-merger-${i + 1}`, merger] as const),
  ]);
  if (mongo?.server) parts.set('store', mongo.server);
  return parts;
}

/** No user of Colonnade may read both streams; one more is written into the server's configuration. */
async function admitWitness(stack: Stack): Promise<NatsConnection> {
  const file = path.join(stack.dir, 'nats', 'nats.conf');
  const text = await readFile(file, 'utf8');
  const password = stack.secrets.busNkeys.provisioner.seed;
  await writeFile(
    file,
    text.replace('users: [', `users: [\n      { user: "${WITNESS}", password: "${password}" }`),
  );
  await stack.nats.restart();
  return await connect({
    ...{ servers: stack.nats.url, user: WITNESS, pass: password },
    ...{ maxReconnectAttempts: -1, reconnectTimeWait: 100 },
  });
}
