import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startChild } from '@colonnade/embedded/servers';
import { createLogger } from '@colonnade/service-kit';
import { fromPlain, toPlain, type Value } from '@colonnade/value';
import { parseAllDocuments } from 'yaml';
import type { Kube } from '../../../test/support/kube.ts';
import { type TempDir, tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { readTlsRotatorConfig } from '../src/config.ts';
import { createTlsRotator, type TlsRotator } from '../src/service.ts';
import type { Status } from '../src/status.ts';

export type Json = Record<string, unknown>;
export type Call = Kube['call'];

const MANIFESTS = new URL('../../../infra/kubernetes/tls-rotator/', import.meta.url);
const GROUP = '/apis/tls.dropapp.ru/v1alpha1/ingresstlses';

/** Where every kind of our manifests is made. */
const PATHS: Readonly<Record<string, (namespace: string) => string>> = {
  Namespace: () => '/api/v1/namespaces',
  CustomResourceDefinition: () => '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  ServiceAccount: (n) => `/api/v1/namespaces/${n}/serviceaccounts`,
  ClusterRole: () => '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: () => '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: (n) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${n}/roles`,
  RoleBinding: (n) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${n}/rolebindings`,
  Deployment: (n) => `/apis/apps/v1/namespaces/${n}/deployments`,
};

/** As `kubectl apply -f` of the files that are shipped, in the order of the README. */
export async function applyManifests(call: Call): Promise<void> {
  for (const file of ['namespace.yaml', 'crd.yaml', 'rbac.yaml', 'deployment.yaml']) {
    for (const document of parseAllDocuments(await readFile(new URL(file, MANIFESTS), 'utf8'))) {
      const object = document.toJS() as { kind: string; metadata: { namespace?: string } };
      const where = PATHS[object.kind]?.(object.metadata.namespace ?? '') ?? '';
      // A field that the API server does not know is a fault of ours.
      await must(call, 'POST', `${where}?fieldValidation=Strict`, object as unknown as Json);
    }
  }
  await waitFor('the CRD', async () => (await call('GET', GROUP)).status === 200, { limitMs: 60_000 });
}

/** A request that has to succeed. */
export async function must(
  call: Call,
  method: string,
  where: string,
  body?: Json,
  type?: string,
): Promise<Json> {
  const how = {
    ...(body === undefined ? {} : { body: fromPlain(body) }),
    ...(type === undefined ? {} : { type }),
  };
  const { status, value } = await call(method, where, how);
  if (status >= 300) throw new Error(`${method} ${where}: ${status} ${JSON.stringify(toPlainSafe(value))}`);
  return toPlainSafe(value) as Json;
}

function toPlainSafe(value: Value): unknown {
  return typeof value === 'string' ? value : toPlain(value);
}

/** A kubeconfig with a token of the service account, which has no right but those of rbac.yaml. */
export async function restrictedKubeconfig(
  kube: Pick<Kube, 'call' | 'url' | 'ca'>,
  dir: string,
): Promise<string> {
  const where = '/api/v1/namespaces/colonnade/serviceaccounts/tls-rotator/token';
  const { status } = await must(kube.call, 'POST', where, { spec: { expirationSeconds: 7200 } });
  const { token } = status as { token: string };
  return writeKubeconfig(dir, { url: kube.url, ca: kube.ca, token });
}

export async function writeKubeconfig(
  dir: string,
  access: { url: string; ca: string; token: string },
): Promise<string> {
  const file = path.join(dir, `kubeconfig-${randomUUID().slice(0, 8)}`);
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: access.url,
          'certificate-authority-data': Buffer.from(access.ca).toString('base64'),
        },
      },
    ],
    users: [{ name: 'u', user: { token: access.token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

export type Rotator = AsyncDisposable & { service: TlsRotator; log: () => Json[]; spoolDir: string };

/** The service in this process, with short waits; its log is kept. */
export async function startRotator(
  kubeconfigFile: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Rotator> {
  const dir: TempDir = await tempDir('rotator');
  const lines: Json[] = [];
  const logger = createLogger({
    service: 'tls-rotator',
    level: 'debug',
    destination: { write: (line: string) => void lines.push(JSON.parse(line) as Json) },
  });
  const spoolDir = path.join(dir.path, 'spool');
  const config = readTlsRotatorConfig({ ...rotatorEnv(kubeconfigFile, spoolDir), ...env });
  const service = await createTlsRotator(config, { logger });
  return {
    service,
    log: () => lines,
    spoolDir,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** Short waits, and no NATS. */
function rotatorEnv(kubeconfigFile: string, spoolDir: string): Record<string, string> {
  return {
    KUBECONFIG_FILE: kubeconfigFile,
    ALLOWED_SOURCE_NAMESPACES: 'ingress',
    SPOOL_DIR: spoolDir,
    NATS_URL: 'nats://127.0.0.1:1',
    NATS_NKEY_SEED: 'none',
    OPS_PORT: '0',
    LEASE_MS: '2000',
    NODE_POLL_MS: '100',
  };
}

export type RotatorProcess = AsyncDisposable & {
  log: () => Promise<Json[]>;
  /** SIGKILL, and its end. */
  kill(): Promise<void>;
};

/** The service as a process of its own, from its `main.ts`. */
export async function startRotatorProcess(
  kubeconfigFile: string,
  { dir, env = {} }: { dir: string; env?: Readonly<Record<string, string>> },
): Promise<RotatorProcess> {
  const logFile = path.join(dir, `rotator-${randomUUID().slice(0, 8)}.log`);
  const main = new URL('../src/main.ts', import.meta.url).pathname;
  const own = { PATH: process.env.PATH ?? '', ...rotatorEnv(kubeconfigFile, path.join(dir, 'spool')) };
  const child = await startChild({
    command: process.execPath,
    args: [main],
    logFile,
    env: { ...own, ...env },
  });
  return {
    async log() {
      const lines = (await readFile(logFile, 'utf8')).split('\n').filter((line) => line.startsWith('{'));
      return lines.flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as Json] : []));
    },
    async kill() {
      child.signal('SIGKILL');
      await child.exited;
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** What tests do to a cluster, as its administrator. */
export function createCluster(call: Call) {
  const secretPath = (namespace: string, name = 'ingress-tls') =>
    `/api/v1/namespaces/${namespace}/secrets/${name}`;
  const merge = (where: string, body: Json) =>
    must(call, 'PATCH', where, body, 'application/merge-patch+json');
  return {
    merge,
    secretPath,
    namespace: (name: string) =>
      must(call, 'POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
    async secret(
      namespace: string,
      texts: Readonly<Record<string, string>>,
      more: Json = {},
      name = 'ingress-tls',
    ) {
      const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, base64(text)]));
      const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data, ...more };
      return must(call, 'POST', `/api/v1/namespaces/${namespace}/secrets`, body);
    },
    setSecret: (namespace: string, texts: Readonly<Record<string, string | null>>, name?: string) =>
      merge(secretPath(namespace, name), {
        data: Object.fromEntries(
          Object.entries(texts).map(([key, text]) => [key, text === null ? null : base64(text)]),
        ),
      }),
    async textsOf(namespace: string, name?: string): Promise<Record<string, string> | undefined> {
      const { status, value } = await call('GET', secretPath(namespace, name));
      if (status === 404) return undefined;
      const { data = {} } = toPlain(value) as { data?: Record<string, string> };
      return Object.fromEntries(
        Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString('utf8')]),
      );
    },
    objectOf: async (namespace: string, name?: string) => must(call, 'GET', secretPath(namespace, name)),
    apply: (name: string, spec: Json) =>
      must(call, 'POST', GROUP, {
        apiVersion: 'tls.dropapp.ru/v1alpha1',
        kind: 'IngressTLS',
        metadata: { name },
        spec,
      }),
    change: (name: string, spec: Json) => merge(`${GROUP}/${name}`, { spec }),
    annotate: (name: string, annotations: Json) => merge(`${GROUP}/${name}`, { metadata: { annotations } }),
    remove: (where: string) => call('DELETE', where),
    removeIngress: (name: string) => call('DELETE', `${GROUP}/${name}`),
    ingressThere: async (name: string) => (await call('GET', `${GROUP}/${name}`)).status === 200,
    async status(name: string): Promise<Status & { conditions: NonNullable<Status['conditions']> }> {
      const { status = {} } = (await must(call, 'GET', `${GROUP}/${name}`)) as { status?: Status };
      return { conditions: [], ...status };
    },
    async condition(name: string, type: string): Promise<string> {
      const { conditions, observedGeneration } = await this.status(name);
      const found = conditions.find((c) => c.type === type);
      const { metadata } = (await must(call, 'GET', `${GROUP}/${name}`)) as {
        metadata: { generation: number };
      };
      return observedGeneration === metadata.generation ? `${found?.status} ${found?.reason}` : 'not seen';
    },
  };
}

export type Cluster = ReturnType<typeof createCluster>;
