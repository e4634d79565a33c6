import {
  type ApiClient,
  admitMaster,
  type BridgeClient,
  connectBridge,
  createApiClient,
  type MasterCredentials,
  registerMaster,
  type Stack,
  type StackOptions,
  startStack,
} from '@colonnade/embedded';
import { fromPlain, toPlain, type Value } from '@colonnade/value';
import { tempDir } from './temp.ts';

export type TestStack = AsyncDisposable & {
  stack: Stack;
  api: ApiClient;
  /** Registers a master and lets it into Redis. */
  addMaster(id: string, envs?: readonly string[]): Promise<MasterCredentials>;
  /** A master's side of the bridge; closed with the stack. */
  bridge(credentials: MasterCredentials): BridgeClient;
};

/** A whole Colonnade for one test file, in a folder of its own. */
export async function stackForTests(
  options: Pick<StackOptions, 'mergers' | 'env' | 'syncAlways' | 'auditPolicyFile' | 'auditWebhookFile'> = {},
): Promise<TestStack> {
  const owned = new AsyncDisposableStack();
  try {
    const dir = owned.use(await tempDir('stack'));
    const stack = owned.use(
      await startStack({ dir: dir.path, report: () => {}, syncAlways: false, ...options }),
    );
    const api = createApiClient(stack.api.url, stack.secrets.adminToken);
    return {
      stack,
      api,
      async addMaster(id, envs = []) {
        const credentials = await registerMaster(api, id, envs);
        await admitMaster(stack.redis, credentials);
        return credentials;
      },
      bridge: (credentials) =>
        owned.use(
          connectBridge({
            host: stack.redis.host,
            port: stack.redis.port,
            username: credentials.redisUser,
            password: credentials.redisPassword,
            master: credentials.master,
            token: credentials.token,
          }),
        ),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  } catch (error) {
    await owned.disposeAsync();
    throw error;
  }
}

/** Writes through the API as an operator does; each returns what the API answered. */
export function writeEstate(api: ApiClient) {
  const plain = (value: Value | undefined) => toPlain(value ?? null) as Record<string, unknown>;
  return {
    async collection(id: string, parentId?: string) {
      const body = { id, name: id, ...(parentId === undefined ? {} : { parent_id: parentId }) };
      return plain((await api.call('POST', '/collections', fromPlain(body))).value);
    },
    async moveCollection(id: string, parentId: string | null) {
      const etag = (await api.call('GET', `/collections/${id}`)).headers.get('etag') ?? '';
      const body = fromPlain({ parent_id: parentId });
      return plain((await api.call('PATCH', `/collections/${id}`, body, { 'if-match': etag })).value);
    },
    async minion(master: string, id: string, collections: readonly string[]) {
      const path = `/masters/${master}/minions/${encodeURIComponent(id)}`;
      const now = await api.send('GET', path);
      const condition: Record<string, string> =
        now.status === 200 ? { 'if-match': now.headers.get('etag') ?? '' } : { 'if-none-match': '*' };
      return plain(
        (await api.call('PUT', path, fromPlain({ collections: [...collections] }), condition)).value,
      );
    },
    async pillar(target: Record<string, string>, name: string, value: Value, isSecret = false) {
      const body = { ...target, name, value, is_secret: isSecret };
      return plain((await api.call('POST', '/pillars', body)).value) as { pid: string };
    },
    async update(pid: string, value: Value) {
      const etag = (await api.call('GET', `/pillars/${pid}`)).headers.get('etag') ?? '';
      return plain((await api.call('PUT', `/pillars/${pid}`, { value }, { 'if-match': etag })).value);
    },
    async remove(pid: string) {
      const etag = (await api.call('GET', `/pillars/${pid}`)).headers.get('etag') ?? '';
      await api.call('DELETE', `/pillars/${pid}`, undefined, { 'if-match': etag });
    },
  };
}
