import { existsSync } from 'node:fs';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { findOnPath, installOnce, type Report, runCommand, toolsCache } from './tools.ts';

export type FoundServer = { path: string; version: string };

export type FindOptions = { report: Report; env?: NodeJS.ProcessEnv };

/** One way to install a server: it leaves `bin/<name>` in the folder it is given, or throws why it cannot. */
export type InstallWay = {
  /** What a person calls it, such as `PyPI`. */
  label: string;
  /** The folder's name in the tools cache; it holds the version. */
  folder: string;
  install: (dir: string) => Promise<void>;
};

export type ServerKind = {
  /** The program's name. */
  name: string;
  /** The oldest version that will do, as `[major, minor]`. */
  atLeast: readonly [number, number];
  /** The environment variable that names a binary to use instead of looking for one. */
  variable: string;
  ways: readonly InstallWay[];
  /** What a person can run when no way worked. */
  byHand: string;
};

/**
 * Finds a server's program: the one named by its variable, one on the PATH, one installed earlier, else installs it.
 * @throws ColonnadeError `unavailable` that names every way tried and the command that installs it
 */
export async function findServer(
  kind: ServerKind,
  { report, env = process.env }: FindOptions,
): Promise<FoundServer> {
  const named = env[kind.variable];
  if (named) return await useNamed(kind, named);
  const cached = kind.ways.map((way) => path.join(toolsCache(env), way.folder, 'bin', kind.name));
  for (const file of [...findOnPath(kind.name, env), ...cached]) {
    const version = await versionOf(file);
    if (version && isEnough(version, kind.atLeast)) return { path: file, version };
  }
  const reasons: string[] = [];
  for (const way of kind.ways) {
    const found = await tryWay(kind, way, toolsCache(env), report).catch((error: Error) => error);
    if (!(found instanceof Error)) return found;
    report(`${kind.name}: not from ${way.label}`);
    reasons.push(`${way.label}: ${found.message}`);
  }
  throw new ColonnadeError(
    'unavailable',
    [
      `${kind.name} ${kind.atLeast.join('.')} or later was not found and could not be installed.`,
      ...reasons,
      `Install it with: ${kind.byHand}`,
    ].join('\n'),
  );
}

async function useNamed(kind: ServerKind, file: string): Promise<FoundServer> {
  const version = await versionOf(file);
  if (version && isEnough(version, kind.atLeast)) return { path: file, version };
  const fault = version ? `is version ${version}` : 'cannot be run';
  throw new ColonnadeError('misconfigured', `${kind.variable} names a ${kind.name} that ${fault}: ${file}`);
}

async function tryWay(
  kind: ServerKind,
  way: InstallWay,
  cache: string,
  report: Report,
): Promise<FoundServer> {
  const start = Date.now();
  const seconds = () => ((Date.now() - start) / 1000).toFixed(1);
  const text = `${kind.name} from ${way.label}`;
  report(`${text} ...`);
  const alive = setInterval(() => report(`${text} ... ${seconds()} s`), 10_000);
  const dir = path.join(cache, way.folder);
  const file = path.join(dir, 'bin', kind.name);
  try {
    await installOnce(dir, async (partial) => {
      await way.install(partial);
      const version = await versionOf(path.join(partial, 'bin', kind.name));
      if (!version) throw new ColonnadeError('unavailable', 'the installed program does not run here');
      if (isEnough(version, kind.atLeast)) return;
      throw new ColonnadeError('unavailable', `it has only version ${version}`);
    });
  } finally {
    clearInterval(alive);
  }
  report(`${text}: done in ${seconds()} s`);
  return { path: file, version: (await versionOf(file)) ?? '' };
}

/** @returns as `7.0.15`; nothing when the file is missing or does not run */
async function versionOf(file: string): Promise<string | undefined> {
  if (!existsSync(file)) return undefined;
  const out = await runCommand(file, ['--version'], { limitMs: 10_000 }).catch(() => '');
  // `nats-server: v2.15.1`, `Redis server v=7.0.15 sha=...`
  return /v=?(\d+\.\d+\.\d+)/.exec(out)?.[1];
}

function isEnough(version: string, [major, minor]: readonly [number, number]): boolean {
  const [hasMajor = 0, hasMinor = 0] = version.split('.').map(Number);
  return hasMajor > major || (hasMajor === major && hasMinor >= minor);
}
