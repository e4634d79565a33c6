import path from 'node:path';
import {
  type ApiClient,
  admitMaster,
  type BridgeClient,
  connectBridge,
  createApiClient,
  type MasterCredentials,
  registerMaster,
  type Stack,
  startStack,
} from '@colonnade/embedded';
import { fromPlain } from '@colonnade/value';
import { mongoForTests } from '../../support/mongo.ts';
import { writeEstate } from '../../support/stack.ts';
import { tempDir } from '../../support/temp.ts';

export type BenchStore = 'sqlite' | 'mongo';

export type BenchStack = AsyncDisposable & {
  /** The store, as `openEstateStore` names it, and the folder it fills. */
  place: string;
  storeDir: string;
  stack: Stack;
  /** The store is a program that stands in for MongoDB. */
  isSubstitute: boolean;
  api: ApiClient;
  addMaster(id: string): Promise<MasterCredentials>;
  /** @param sharedReader all replies over one connection */
  connect(credentials: MasterCredentials, sharedReader?: boolean): BridgeClient;
};

/** A whole Colonnade as it is shipped: records and events are synced before they are acknowledged. */
export async function startBenchStack(
  store: BenchStore,
  mergers = 1,
  more: Readonly<Record<string, string>> = {},
): Promise<BenchStack> {
  const started = new AsyncDisposableStack();
  try {
    const dir = started.use(await tempDir('bench')).path;
    const mongo = store === 'mongo' ? started.use(await mongoForTests()) : undefined;
    const [hosts, options = ''] = mongo?.url.split('/?') ?? [];
    const env: Record<string, string> =
      mongo === undefined
        ? {}
        : { STORE_URL: `${hosts?.replace(/\/$/u, '')}/${mongo.freshDatabase()}?${options}` };
    // The limit for one master is for strangers; here one asks for all.
    env.KMS_OPENS_PER_SECOND = '1000000';
    Object.assign(env, more);
    const stack = started.use(await startStack({ dir, report: () => {}, mergers, env }));
    const api = createApiClient(stack.api.url, stack.secrets.adminToken);
    return {
      place: env.STORE_URL ?? `sqlite://${stack.storePath}`,
      storeDir: path.dirname(mongo?.server?.logFile ?? stack.storePath),
      stack,
      isSubstitute: mongo?.isSubstitute ?? false,
      api,
      async addMaster(id) {
        const credentials = await registerMaster(api, id, []);
        await admitMaster(stack.redis, credentials);
        return credentials;
      },
      connect({ redisUser: username, redisPassword: password, master, token }, sharedReader = false) {
        const { host, port } = stack.redis;
        return started.use(connectBridge({ host, port, username, password, master, token, sharedReader }));
      },
      [Symbol.asyncDispose]: () => started.disposeAsync(),
    };
  } catch (error) {
    await started.disposeAsync();
    throw error;
  }
}

export const BENCH_MINION = 'web-1.example';

/** One merge over the bridge. @throws when it is refused: a figure of refusals is none */
export async function askForPillar(bridge: BridgeClient, minionId = BENCH_MINION) {
  const reply = await bridge.ask({ minionId, pillarenv: 'auto', ttlMs: 10_000 });
  if (!reply.ok) throw new Error(`${minionId}: ${reply.error.message}`);
  return reply;
}
/** 20 pillars, four in each of five scopes; one of each four is a secret. */
const PER_SCOPE = 4;
const PLAIN_BYTES = 150;

/** The estate all figures of one merge are measured on; the reply has about 3 KB. */
export async function fillBenchEstate(api: ApiClient, master: string): Promise<void> {
  const write = writeEstate(api);
  const tree = ['site', 'rack', 'role'];
  for (const [i, id] of tree.entries()) await write.collection(id, tree[i - 1]);
  await write.minion(master, BENCH_MINION, ['role']);
  const targets: Record<string, string>[] = [
    { tgt_type: 'root' },
    ...tree.map((collection_id) => ({ tgt_type: 'collection', collection_id })),
    { tgt_type: 'minion', master, minion_id: BENCH_MINION },
  ];
  for (const [s, target] of targets.entries()) {
    for (let i = 0; i < PER_SCOPE; i++) {
      const isSecret = i === 0;
      const value = isSecret
        ? `secret number ${s}`
        : fromPlain({ n: i, ratio: 0.5, text: 'x'.repeat(PLAIN_BYTES) });
      await write.pillar(target, `pillar_${s}_${i}`, value, isSecret);
    }
  }
}
