import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import https from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { type Child, startChild } from '@colonnade/embedded/servers';
import { parseValue, type Value } from '@colonnade/value';
import { findKube } from './kube/find-kube.ts';
import { tempDir } from './temp.ts';
import { waitFor } from './wait-for.ts';

export type KubeOptions = {
  /** The text of a file for `--audit-policy-file`. */
  auditPolicy?: string;
  /** More flags of kube-apiserver. */
  flags?: readonly string[];
  /** Tokens beside `admin-token`: the user of each and its groups. */
  tokens?: Readonly<Record<string, { user: string; groups: readonly string[] }>>;
};

export type Kube = AsyncDisposable & {
  url: string;
  dir: string;
  /** The certificate the API server shows, as PEM: its own authority. */
  ca: string;
  /** Present when there is an audit policy: the API server's own log backend. */
  auditLog: string;
  /** Sends a request as the owner of a token; null: as nobody. */
  call(
    method: string,
    where: string,
    options?: { body?: Value | string; token?: string | null; type?: string },
  ): Promise<{ status: number; value: Value }>;
  /** Ends the API server as an operator does; it delivers what its backends hold. */
  stopApiserver(): Promise<void>;
  /** Another process on the same port, which remembers nothing of what watches were told. */
  restartApiserver(): Promise<void>;
};

const READY_LIMIT_MS = 90_000;

/**
 * A real kube-apiserver with its etcd, for one test: free ports, fresh state, RBAC, `admin-token` for everything. No
 * controllers run: namespaces stay Terminating, nothing is collected, no default ServiceAccounts.
 * @throws Error when the programs are missing (`skipWithoutKube`) or do not start
 */
export async function startKube(options: KubeOptions = {}): Promise<Kube> {
  const programs = findKube();
  if (programs === undefined) throw new Error('there is no kube-apiserver; ask skipWithoutKube first');
  await using started = new AsyncDisposableStack();
  const dir = started.use(await tempDir('kube')).path;
  const [etcdPort, peerPort, port] = await freePorts(3);
  started.use(await startEtcd(programs.etcd, dir, etcdPort as number, peerPort as number));
  const auditLog = path.join(dir, 'audit.log');
  const args = await apiserverFlags(dir, etcdPort as number, port as number, auditLog, options);
  const launch = () =>
    startChild({ command: programs.apiserver, args, logFile: path.join(dir, 'apiserver.log') });
  let apiserver = await launch();
  started.defer(() => apiserver[Symbol.asyncDispose]());
  const url = `https://127.0.0.1:${port}`;
  const certificate = path.join(dir, 'pki', 'apiserver.crt');
  const call: Kube['call'] = (method, where, how = {}) =>
    sendToKube(`${url}${where}`, certificate, method, how);
  const untilReady = () =>
    waitFor(
      'the API server',
      async () => {
        if (apiserver.exit !== undefined) throw new Error(`it ended: ${await endOfLog(dir)}`);
        return (await call('GET', '/readyz')).status === 200;
      },
      { limitMs: READY_LIMIT_MS, everyMs: 100 },
    );
  await untilReady();
  const owned = started.move();
  return {
    url,
    dir,
    ca: await readFile(certificate, 'utf8'),
    auditLog,
    call,
    stopApiserver: async () => void (await apiserver.stop(60_000)),
    async restartApiserver() {
      // With a watch open it would take its minute.
      await apiserver.stop(1000);
      apiserver = await launch();
      await untilReady();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function startEtcd(command: string, dir: string, port: number, peerPort: number): Promise<Child> {
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
  return startChild({
    command,
    args: [
      '--name=test',
      `--data-dir=${path.join(dir, 'etcd')}`,
      '--unsafe-no-fsync',
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=test=${peer}`,
    ],
    logFile: path.join(dir, 'etcd.log'),
  });
}

async function apiserverFlags(
  dir: string,
  etcdPort: number,
  port: number,
  auditLog: string,
  { auditPolicy, flags = [], tokens = {} }: KubeOptions,
): Promise<string[]> {
  const pki = path.join(dir, 'pki');
  await mkdir(pki);
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const files = { key: path.join(pki, 'sa.key'), pub: path.join(pki, 'sa.pub') };
  await writeFile(files.key, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 });
  await writeFile(files.pub, publicKey.export({ type: 'spki', format: 'pem' }));
  const everyone = { 'admin-token': { user: 'admin', groups: ['system:masters'] }, ...tokens };
  const rows = Object.entries(everyone).map(
    ([t, { user, groups }]) => `${t},${user},${user}-uid,"${groups.join(',')}"`,
  );
  await writeFile(path.join(dir, 'tokens.csv'), `${rows.join('\n')}\n`, { mode: 0o600 });
  const audit: string[] = [];
  if (auditPolicy !== undefined) {
    const policyFile = path.join(dir, 'audit-policy.yaml');
    await writeFile(policyFile, auditPolicy);
    audit.push(
      `--audit-policy-file=${policyFile}`,
      `--audit-log-path=${auditLog}`,
      '--audit-log-mode=blocking-strict',
    );
  }
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${pki}`,
    `--service-account-key-file=${files.pub}`,
    `--service-account-signing-key-file=${files.key}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--endpoint-reconciler-type=none',
    `--token-auth-file=${path.join(dir, 'tokens.csv')}`,
    '--authorization-mode=RBAC',
    '--disable-admission-plugins=ServiceAccount',
    ...audit,
    ...flags,
  ];
}

/** One request to an API server whose certificate, or its authority, is in a file. */
export async function sendToKube(
  url: string,
  certificate: string,
  method: string,
  how: NonNullable<Parameters<Kube['call']>[2]>,
): Promise<{ status: number; value: Value }> {
  const { body, token = 'admin-token', type = 'application/json' } = how;
  const ca = await readFile(certificate);
  const headers = { 'content-type': type, ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; value: Value }>();
  const request = https.request(url, { method, ca, headers, agent: false, timeout: 10_000 }, (response) => {
    const parts: Buffer[] = [];
    response.on('data', (part: Buffer) => parts.push(part));
    response.on('error', reject);
    response.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8');
      resolve({ status: response.statusCode ?? 0, value: readBody(text) });
    });
  });
  request.on('error', reject);
  request.on('timeout', () => request.destroy(new Error('no answer from the API server')));
  request.end(
    typeof body === 'string' ? body : body === undefined ? undefined : JSON.stringify(body, bigintAsNumber),
  );
  return promise;
}

/** A watch answers with several documents, `/readyz` with none: those stay text. */
function readBody(text: string): Value {
  try {
    return parseValue(text, { maxDepth: 512 });
  } catch {
    return text;
  }
}

function bigintAsNumber(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}

async function endOfLog(dir: string): Promise<string> {
  const text = await readFile(path.join(dir, 'apiserver.log'), 'utf8').catch(() => '');
  return text.trim().split('\n').slice(-5).join('\n');
}

/** Ports nobody listens on now; asked for together, so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
