import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { sendToKube } from '../../../test/support/kube.ts';
import { startBalancer } from '../../../test/support/kube-nodes/balancer.ts';
import { startNodes, type TestNode, type TestNodes } from '../../../test/support/kube-nodes/nodes.ts';
import { type OidcIssuer, startOidcIssuer } from '../../../test/support/oidc-issuer.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { type Authority, makeCa } from './pki.ts';
import {
  applyManifests,
  type Call,
  type Cluster,
  createCluster,
  type Json,
  must,
  restrictedKubeconfig,
} from './support.ts';

export type Material = { 'tls.crt': string; 'tls.key': string; 'ca.crt': string };

/** A control plane whose API servers ask an issuer behind the ingress, and what its administrator has set up. */
export type ControlPlane = AsyncDisposable & {
  plane: TestNodes;
  call: Call;
  cluster: Cluster;
  issuer: OidcIssuer;
  kubeconfig: string;
  /** A new authority, and a certificate of it for the ingress. */
  newMaterial(name: string, serial?: string): Material;
  first: Material;
  env: Readonly<Record<string, string>>;
  spec: (oidc?: Json, more?: Json) => Json;
  isReady(node: TestNode): Promise<boolean>;
  /** Asks the API server of one node, as the administrator. */
  ask(node: TestNode, where: string): Promise<unknown>;
  /** Whether an API server takes a token whose signing key it cannot know yet. */
  takesFreshToken(node: TestNode): Promise<boolean>;
  caOn(node: TestNode): Promise<string>;
};

const LIMIT = { limitMs: 60_000, everyMs: 200 };

export type PlaneOptions = {
  count?: number;
  graceSeconds?: number;
  /** The API servers know the issuer by an AuthenticationConfiguration instead of flags. */
  reload?: boolean;
};

/** Where the nodes of such a control plane have it. */
export const CONFIG_PATH = '/etc/kubernetes/pki/authentication.yaml';

export async function startControlPlane(options: PlaneOptions = {}): Promise<ControlPlane> {
  await using started = new AsyncDisposableStack();
  const { path: dir } = started.use(await tempDir('plane'));
  const authority = makeCa(dir, 'first');
  let issuer: OidcIssuer | undefined;
  const { reload = false, ...sizes } = options;
  const plane = started.use(
    await startNodes({
      ...sizes,
      pki: reload
        ? (url) => ({ 'authentication.yaml': authenticationConfig(url, authority.cert) })
        : { 'ingress-ca.crt': authority.cert },
      flags: reload ? () => [`--authentication-config=${CONFIG_PATH}`] : oidcFlags,
      async before(gateway) {
        const leaf = authority.issue('issuer', { names: [`IP:${gateway}`] });
        issuer = started.use(await startOidcIssuer(gateway, leaf));
        return issuer.url;
      },
    }),
  );
  return await finish(started, { plane, dir, issuer: issuer as unknown as OidcIssuer, authority });
}

function oidcFlags(issuer: string): string[] {
  return [
    `--oidc-issuer-url=${issuer}`,
    '--oidc-client-id=colonnade-test',
    '--oidc-ca-file=/etc/kubernetes/pki/ingress-ca.crt',
    '--oidc-username-prefix=oidc:',
  ];
}

function authenticationConfig(issuer: string, ca: string): string {
  return `# as an installer has left it
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
  - issuer:
      url: ${issuer}
      audiences: [colonnade-test]
      certificateAuthority: |
        ${ca.trimEnd().replaceAll('\n', '\n        ')}
    claimMappings:
      username: {claim: sub, prefix: "oidc:"}
`;
}

type Parts = { plane: TestNodes; dir: string; issuer: OidcIssuer; authority: Authority };

async function finish(
  started: AsyncDisposableStack,
  { plane, dir, issuer, authority }: Parts,
): Promise<ControlPlane> {
  const caFile = path.join(dir, 'cluster-ca.crt');
  await writeFile(caFile, plane.ca);
  const targets = plane.nodes.map(({ address }) => ({ host: address, port: 6443 }));
  const balancer = started.use(await startBalancer(targets));
  const url = `https://127.0.0.1:${balancer.port}`;
  // An API server on its way down still takes connections, and drops them.
  const call: Call = (method, where, how = {}) =>
    waitFor(`${method} ${where}`, () => sendToKube(`${url}${where}`, caFile, method, how), LIMIT);
  const direct = (node: TestNode, where: string, token: string | null) =>
    sendToKube(`https://${node.address}:6443${where}`, caFile, 'GET', { token });
  const isReady = async (node: TestNode) =>
    (await direct(node, '/readyz', null).catch(() => undefined))?.status === 200;
  for (const node of plane.nodes)
    await waitFor(`${node.name} to be ready`, () => isReady(node), { limitMs: 120_000, everyMs: 200 });
  const cluster = createCluster(call);
  await applyManifests(call);
  const materialOf = (ca: Authority): Material => {
    const middle = ca.intermediate('middle');
    const leaf = middle.issue('ingress', { names: [`IP:${plane.network.gateway}`] });
    return { 'tls.crt': leaf.cert + middle.cert, 'tls.key': leaf.key, 'ca.crt': ca.cert };
  };
  const first = materialOf(authority);
  await setUp(cluster, call, plane, first);
  started.use(followIngress(cluster, issuer, first));
  const kubeconfig = await restrictedKubeconfig({ call, url, ca: plane.ca }, dir);
  const owned = started.move();
  return {
    ...{ plane, call, cluster, issuer, kubeconfig, first, isReady },
    newMaterial: (name, serial) => materialOf(makeCa(dir, name, serial)),
    env: { ALLOWED_NODE_ADDRESSES: `${plane.network.gateway}/24`, WATCH_SILENCE_MS: '70000' },
    spec: (oidc = {}, more = {}) => specFor(oidc, more),
    ask: async (node, where) => (await direct(node, where, 'admin-token')).value,
    takesFreshToken: async (node) =>
      (await direct(node, '/api/v1/namespaces/default', issuer.freshToken('someone')).catch(() => undefined))
        ?.status === 403,
    caOn: (node) => readFile(node.file('etc/kubernetes/pki/ingress-ca.crt'), 'utf8'),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What an administrator makes before the first IngressTLS, as the README says. */
async function setUp(cluster: Cluster, call: Call, plane: TestNodes, first: Material): Promise<void> {
  for (const name of ['ingress', 'dex', 'shop']) await cluster.namespace(name);
  await cluster.secret('ingress', first, { type: 'kubernetes.io/tls' });
  for (const name of ['dex', 'shop']) {
    await cluster.secret(
      name,
      { 'tls.crt': first['tls.crt'], 'tls.key': first['tls.key'] },
      { type: 'kubernetes.io/tls' },
    );
  }
  await cluster.secret('colonnade', { 'ssh-privatekey': plane.sshKey }, {}, 'tls-rotator-ssh');
  await cluster.secret('colonnade', { known_hosts: plane.knownHosts }, {}, 'tls-rotator-known-hosts');
  for (const { name, address } of plane.nodes) {
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    await must(call, 'POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const status = {
      addresses: [
        { type: 'Hostname', address: name },
        { type: 'InternalIP', address },
      ],
    };
    await must(call, 'PATCH', `/api/v1/nodes/${name}/status`, { status }, 'application/merge-patch+json');
  }
}

function specFor(oidc: Json, more: Json): Json {
  return {
    sourceSecretRef: { namespace: 'ingress', name: 'ingress-tls' },
    namespaces: ['dex', 'shop'],
    ...more,
    apiServerOIDC: {
      enabled: true,
      dropOldCAAfterSeconds: 3600,
      ssh: {
        keySecretRef: { name: 'tls-rotator-ssh' },
        knownHostsSecretRef: { name: 'tls-rotator-known-hosts' },
      },
      restart: { minimumWaitSeconds: 1, stopTimeoutSeconds: 60, readyTimeoutSeconds: 120 },
      ...oidc,
    },
  };
}

/** The ingress in front of the issuer: it serves what stands in the Secret of its namespace. */
function followIngress(cluster: Cluster, issuer: OidcIssuer, first: Material): AsyncDisposable {
  const serve = (m: Pick<Material, 'tls.crt' | 'tls.key'>) =>
    issuer.serve({ cert: m['tls.crt'], key: m['tls.key'] });
  serve(first);
  let served = first['tls.crt'];
  let ended = false;
  const loop = (async () => {
    while (!ended) {
      const now = await cluster.textsOf('dex').catch(() => undefined);
      if (now?.['tls.crt'] !== undefined && now['tls.crt'] !== served) {
        served = now['tls.crt'];
        serve(now as Material);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      ended = true;
      await loop;
    },
  };
}
