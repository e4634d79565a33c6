import { existsSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { findOnPath, installOnce, type Report, runCommand, toolsCache } from '@colonnade/embedded/servers';
import { tempDir } from '../temp.ts';

/** The programs of a Kubernetes control plane: only what answers requests, and its store. */
export type KubePrograms = { apiserver: string; etcd: string; version: string };

const VERSION = '1.37.2';
/** Compiling takes a quarter of an hour of two cores, and some 2.5 GB of memory. */
const BUILD_LIMIT_MS = 60 * 60_000;
const PROGRAMS = ['kube-apiserver', 'etcd'] as const;

/**
 * The folder KUBEBUILDER_ASSETS names, as Kubernetes' own test tools have it, else one built here before.
 * @returns undefined when there is neither
 */
export function findKube(env: NodeJS.ProcessEnv = process.env): KubePrograms | undefined {
  const dirs = [env.KUBEBUILDER_ASSETS, path.join(cacheFolder(env), 'bin')];
  const dir = dirs.find((d) => d && PROGRAMS.every((name) => existsSync(path.join(d, name))));
  if (!dir) return undefined;
  return { apiserver: path.join(dir, 'kube-apiserver'), etcd: path.join(dir, 'etcd'), version: VERSION };
}

/** Why a test cannot have a Kubernetes, or false. */
export function skipWithoutKube(): false | string {
  if (findKube() !== undefined) return false;
  return 'no kube-apiserver: set KUBEBUILDER_ASSETS, or build one with: node test/support/kube/build.ts';
}

/**
 * Compiles them with Go from the modules beside this file, into the tools cache, once.
 * @throws ColonnadeError `unavailable`: no Go, or it does not compile
 */
export async function buildKube(report: Report, env: NodeJS.ProcessEnv = process.env): Promise<KubePrograms> {
  const there = findKube(env);
  if (there !== undefined) return there;
  const [go] = findOnPath('go', env);
  if (go === undefined) throw new Error('no go on the PATH; Go 1.26 or later compiles kube-apiserver');
  const start = Date.now();
  const minutes = () => ((Date.now() - start) / 60_000).toFixed(1);
  const alive = setInterval(() => report(`kube-apiserver ${VERSION} from Go ... ${minutes()} min`), 60_000);
  try {
    report(`kube-apiserver ${VERSION} from Go ... (about 15 minutes)`);
    await installOnce(cacheFolder(env), (dir) => compile(go, path.join(dir, 'bin'), env));
    report(`kube-apiserver ${VERSION} from Go: done in ${minutes()} min`);
  } finally {
    clearInterval(alive);
  }
  return findKube(env) as KubePrograms;
}

async function compile(go: string, out: string, env: NodeJS.ProcessEnv): Promise<void> {
  // A copy outside the checkout: the compiler looks for a repository around a module, and must write nothing into it.
  await using source = await tempDir('kube-source');
  for (const name of ['go.mod', 'go.sum', 'cmd']) {
    await cp(path.join(import.meta.dirname, name), path.join(source.path, name), { recursive: true });
  }
  const version = 'k8s.io/component-base/version';
  const [major, minor] = VERSION.split('.');
  const stamps = [`gitVersion=v${VERSION}`, `gitMajor=${major}`, `gitMinor=${minor}`];
  const flags = ['-s', '-w', ...stamps.flatMap((stamp) => ['-X', `${version}.${stamp}`])].join(' ');
  const packages = PROGRAMS.map((name) => `./cmd/${name}`);
  const args = [
    'build',
    '-mod=readonly',
    '-p',
    '2',
    '-trimpath',
    `-ldflags=${flags}`,
    '-o',
    `${out}/`,
    ...packages,
  ];
  // Everything else on the machine goes first.
  const [nice] = findOnPath('nice', env);
  const [command, ...before] = nice === undefined ? [go] : [nice, '-n', '15', go];
  await runCommand(command as string, [...before, ...args], {
    cwd: source.path,
    env: { ...env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' },
    limitMs: BUILD_LIMIT_MS,
  });
}

function cacheFolder(env: NodeJS.ProcessEnv): string {
  return path.join(toolsCache(env), `kube-apiserver-${VERSION}-${process.platform}-${process.arch}`);
}
