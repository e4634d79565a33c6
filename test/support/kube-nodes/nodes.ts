import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Child, startChild } from '@colonnade/embedded/servers';
import { makeAuthority } from '../certificates.ts';
import { findKube } from '../kube/find-kube.ts';
import { type TempDir, tempDir } from '../temp.ts';
import { waitFor } from '../wait-for.ts';
import { type Network, startNetwork } from './network.ts';
import { makeNodeFiles } from './node-files.ts';

const run = promisify(execFile);
const PORT = 6443;

/** A machine of the control plane. */
export type TestNode = {
  name: string;
  address: string;
  dir: string;
  /** A path of the node, as this side sees it. */
  file: (onNode: string) => string;
  /** As `type base64`, of every host key. */
  hostKeys: readonly string[];
  /** Everything on it ends at once, as when its power goes; `start` boots it again. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Runs a command on the node, past sshd. */
  exec(...command: string[]): Promise<string>;
};

export type TestNodes = AsyncDisposable & {
  dir: string;
  nodes: readonly TestNode[];
  network: Network;
  /** The authority of the API servers' certificates, PEM. */
  ca: string;
  /** The private key that sshd lets in, OpenSSH form. */
  sshKey: string;
  knownHosts: string;
};

export type NodesOptions = {
  count?: number;
  /** Starts what the API servers need, at an address they reach; what it gives goes to `flags`. */
  before?: (gateway: string) => Promise<string>;
  /** More flags of every kube-apiserver. */
  flags?: (given: string) => readonly string[];
  /** Files below /etc/kubernetes/pki of every node. */
  pki?: Readonly<Record<string, string>> | ((given: string) => Readonly<Record<string, string>>);
  graceSeconds?: number;
  /** What starts everything else on a node: a script, with cron; or systemd (see `skipWithoutSystemd`). */
  init?: 'plain' | 'systemd';
};

/**
 * Machines with sshd, cron and a stand-in for the kubelet, which runs a real kube-apiserver from its manifest; one etcd
 * for all of them.
 * @throws Error when the programs are missing (`skipWithoutKube`, `skipWithoutNodes`)
 */
export async function startNodes(options: NodesOptions = {}): Promise<TestNodes> {
  const programs = findKube();
  if (programs === undefined) throw new Error('there is no kube-apiserver; ask skipWithoutKube first');
  const {
    count = 3,
    graceSeconds = 2,
    init = 'plain',
    pki = {},
    flags = () => [],
    before = async () => '',
  } = options;
  await using started = new AsyncDisposableStack();
  const temp: TempDir = started.use(await tempDir('nodes'));
  const network = started.use(await startNetwork(count));
  const etcd = `http://${network.gateway}:2379`;
  const logFile = path.join(temp.path, 'etcd.log');
  const args = etcdFlags(path.join(temp.path, 'etcd'), etcd, network.gateway);
  started.use(await startChild({ command: programs.etcd, args, logFile }));
  const shared = await makeShared(temp.path);
  const given = await before(network.gateway);
  const nodes: TestNode[] = [];
  for (let number = 1; number <= count; number += 1) {
    const dir = path.join(temp.path, `node-${number}`);
    const hostKeys = await makeNodeFiles(dir, shared.authorizedKey);
    const address = network.address(number);
    const more = typeof pki === 'function' ? pki(given) : pki;
    await copyPki(dir, shared, { name: `node-${number}`, address, more });
    const command = [programs.apiserver, ...apiserverFlags(etcd, address), ...flags(given)];
    await writeManifest(path.join(dir, 'etc', 'kubernetes', 'manifests'), command, graceSeconds);
    const node = createNode({
      name: `node-${number}`,
      address,
      dir,
      hostKeys,
      namespace: network.namespace(number),
      init,
    });
    started.defer(() => node.kill());
    await node.start();
    nodes.push(node);
  }
  const owned = started.move();
  const knownHosts = nodes.flatMap((n) => n.hostKeys.map((key) => `${n.address} ${key}\n`)).join('');
  return {
    ...{ dir: temp.path, nodes, network, ca: shared.ca, sshKey: shared.sshKey, knownHosts },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** systemd rules the hierarchy it is in: each has a part of its own. In the old layout, the new one, and the one between. */
const CGROUPS = '/sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup';
const IN_OWN_CGROUP = `for root in ${CGROUPS}; do
  [ -e $root/cgroup.procs ] || continue
  mkdir -p $root/$0 && echo $$ >$root/$0/cgroup.procs
done
exec "$@"`;
/** Its processes are killed, and may take a moment. */
const REMOVE_CGROUP = `for root in ${CGROUPS}; do
  tries=0
  while [ -d $root/$0 ] && [ $tries -lt 50 ]; do
    find $root/$0 -depth -type d -exec rmdir {} + 2>/dev/null
    tries=$((tries + 1)); sleep 0.1
  done
done`;

type Place = {
  name: string;
  address: string;
  dir: string;
  hostKeys: readonly string[];
  namespace: string;
  init: 'plain' | 'systemd';
};

function createNode({ name, address, dir, hostKeys, namespace, init: kind }: Place): TestNode {
  let init: Child | undefined;
  const script = path.join(import.meta.dirname, 'node-init.sh');
  const kubelet = path.join(import.meta.dirname, 'kubelet.ts');
  return {
    ...{ name, address, dir, hostKeys },
    file: (onNode) => path.join(dir, onNode),
    async start() {
      const own = ['--uts', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
      const boot = ['/bin/sh', script, dir, name, process.execPath, kubelet, kind];
      const inside = ['ip', 'netns', 'exec', namespace, 'unshare', ...own];
      const logFile = path.join(dir, 'init.log');
      const args =
        kind === 'plain'
          ? [...inside, ...boot]
          : ['-c', IN_OWN_CGROUP, namespace, ...inside, '--cgroup', ...boot];
      const command = kind === 'plain' ? (args.shift() as string) : '/bin/sh';
      init = await startChild({ command, args, logFile });
    },
    async kill() {
      const first =
        init === undefined || init.exit !== undefined ? '' : await firstProcess(init).catch(() => '');
      init?.signal('SIGKILL');
      await init?.exited;
      await waitFor('everything on the node to end', () => !isAlive(first), { limitMs: 60_000 });
      if (kind === 'systemd') await run('/bin/sh', ['-c', REMOVE_CGROUP, namespace]);
    },
    async exec(...command) {
      if (init === undefined) throw new Error(`${name} is not started`);
      const { stdout } = await run('nsenter', ['-t', await firstProcess(init), '-a', ...command]);
      return stdout;
    },
  };
}

/** The first process of a node, as this side numbers it; it ends after all others on the node. */
async function firstProcess({ pid }: Child): Promise<string> {
  return (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim();
}

function isAlive(pid: string): boolean {
  try {
    return pid !== '' && !/^State:\s+[ZX]/mu.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

type Shared = Awaited<ReturnType<typeof makeShared>>;

/** What all nodes have in common: authority, keys of service accounts, tokens, the key for SSH. */
async function makeShared(dir: string) {
  const authority = await makeAuthority(dir, 'cluster');
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const sshFile = path.join(dir, 'ssh');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', sshFile]);
  return {
    authority,
    ca: await readFile(authority.certFile, 'utf8'),
    saKey: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    saPub: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    sshKey: await readFile(sshFile, 'utf8'),
    authorizedKey: await readFile(`${sshFile}.pub`, 'utf8'),
  };
}

async function copyPki(
  dir: string,
  shared: Shared,
  { name, address, more }: { name: string; address: string; more: Readonly<Record<string, string>> },
): Promise<void> {
  const pki = path.join(dir, 'etc', 'kubernetes', 'pki');
  const names = [`IP:${address}`, 'IP:127.0.0.1', 'DNS:kubernetes.default.svc', 'DNS:kubernetes'];
  const { certFile, keyFile } = await shared.authority.issue(name, names);
  await cp(certFile, path.join(pki, 'apiserver.crt'));
  await cp(keyFile, path.join(pki, 'apiserver.key'));
  const tokens = 'admin-token,admin,admin-uid,"system:masters"\n';
  const files = { 'sa.key': shared.saKey, 'sa.pub': shared.saPub, 'tokens.csv': tokens, ...more };
  for (const [file, text] of Object.entries(files))
    await writeFile(path.join(pki, file), text, { mode: 0o644 });
}

/** As kubeadm leaves it, in JSON. Moved into the folder whole: the kubelet reads whatever it sees. */
async function writeManifest(
  folder: string,
  command: readonly string[],
  terminationGracePeriodSeconds: number,
): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'kube-apiserver', namespace: 'kube-system' },
    spec: { terminationGracePeriodSeconds, containers: [{ name: 'kube-apiserver', command }] },
  };
  await mkdir(folder, { recursive: true });
  const draft = path.join(folder, '..', 'draft.json');
  await writeFile(draft, JSON.stringify(pod));
  await rm(path.join(folder, 'kube-apiserver.yaml'), { force: true });
  await rename(draft, path.join(folder, 'kube-apiserver.yaml'));
}

function apiserverFlags(etcd: string, address: string): string[] {
  const pki = '/etc/kubernetes/pki';
  return [
    `--etcd-servers=${etcd}`,
    '--bind-address=0.0.0.0',
    `--advertise-address=${address}`,
    `--secure-port=${PORT}`,
    `--tls-cert-file=${pki}/apiserver.crt`,
    `--tls-private-key-file=${pki}/apiserver.key`,
    `--service-account-key-file=${pki}/sa.pub`,
    `--service-account-signing-key-file=${pki}/sa.key`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--endpoint-reconciler-type=none',
    `--token-auth-file=${pki}/tokens.csv`,
    '--authorization-mode=RBAC',
    '--disable-admission-plugins=ServiceAccount',
  ];
}

function etcdFlags(dataDir: string, client: string, host: string): string[] {
  const peer = `http://${host}:2380`;
  return [
    '--name=test',
    `--data-dir=${dataDir}`,
    '--unsafe-no-fsync',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=test=${peer}`,
  ];
}
