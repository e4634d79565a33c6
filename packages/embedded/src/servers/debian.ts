import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { findOnPath, runCommand } from './tools.ts';

/**
 * Unpacks Debian packages, and those they need that the system lacks, below `dir`, and puts a starter for the
 * program with its library path at `dir/bin/<name>`. Needs no root and leaves the system's packages and lists as
 * they are.
 * @throws ColonnadeError `unavailable` when there is no apt, or no such package
 */
export async function installDebian(
  name: string,
  packages: readonly string[],
  dir: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  for (const tool of ['apt-get', 'dpkg-deb', 'dpkg']) {
    if (findOnPath(tool, env).length === 0) throw new ColonnadeError('unavailable', `no ${tool} on the PATH`);
  }
  const downloads = path.join(dir, 'downloads');
  await mkdir(downloads);
  // The system's lists may be missing or so old that their packages are gone: then lists of our own, fetched now.
  await download(packages, downloads, [], env).catch(async () => {
    const lists = await fetchLists(path.join(dir, 'apt'), env);
    await download(packages, downloads, lists, env);
  });
  const root = path.join(dir, 'root');
  for (const file of (await readdir(downloads)).filter((entry) => entry.endsWith('.deb'))) {
    await runCommand('dpkg-deb', ['--extract', path.join(downloads, file), root], { env });
  }
  await rm(downloads, { recursive: true });
  await rm(path.join(dir, 'apt'), { recursive: true, force: true });
  await writeStarter(name, dir, await libraryDirs(root));
}

/** Downloads the packages, installed or not, and what they need: apt's own simulation says what is missing. */
async function download(
  wanted: readonly string[],
  into: string,
  aptOptions: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const plan = await runCommand(
    'apt-get',
    ['install', '--simulate', '--no-install-recommends', '--reinstall', ...aptOptions, ...wanted],
    { env: { ...env, LC_ALL: 'C' } },
  );
  const packages = [...plan.matchAll(/^Inst (\S+)/gm)].map(([, found]) => found as string);
  const lacking = wanted.filter((name) => !packages.includes(name));
  if (lacking.length > 0) throw new ColonnadeError('unavailable', `apt has no ${lacking.join(', ')}`);
  await runCommand('apt-get', ['download', ...aptOptions, ...packages], { cwd: into, env });
}

/** @returns the apt options that use the lists fetched into `dir` */
async function fetchLists(dir: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  await mkdir(path.join(dir, 'state', 'lists', 'partial'), { recursive: true });
  await mkdir(path.join(dir, 'cache', 'archives', 'partial'), { recursive: true });
  const options = [
    `Dir::State=${path.join(dir, 'state')}`,
    `Dir::State::lists=${path.join(dir, 'state', 'lists')}`,
    `Dir::Cache=${path.join(dir, 'cache')}`,
    'Dir::State::status=/var/lib/dpkg/status',
    // As root, apt would drop to a user that cannot enter a private folder.
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option]);
  await runCommand('apt-get', ['update', ...options], { env });
  return options;
}

/** Where the unpacked packages keep shared libraries: the multiarch folder and plain `lib`. */
async function libraryDirs(root: string): Promise<string[]> {
  const multiarch = (await runCommand('dpkg', ['--print-architecture'])).trim();
  const names = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as Record<string, string>;
  const triplet = names[multiarch] ?? '';
  const dirs = ['usr/lib', 'lib'].flatMap((base) => [path.join(base, triplet), base]);
  return [...new Set(dirs)].filter((dir) => existsSync(path.join(root, dir)));
}

/** The starter finds its folder by itself, since the whole of it is renamed once it is complete. */
async function writeStarter(name: string, dir: string, libraries: readonly string[]): Promise<void> {
  const programs = ['usr/bin', 'usr/sbin', 'bin', 'sbin'].map((base) => path.join(base, name));
  const program = await firstFile(path.join(dir, 'root'), programs);
  if (!program) throw new ColonnadeError('unavailable', `the packages hold no program ${name}`);
  await mkdir(path.join(dir, 'bin'), { recursive: true });
  const searchPath = libraries.map((lib) => `$here/root/${lib}`).join(':');
  const script = [
    '#!/bin/sh',
    'here=$(cd "$(dirname "$0")/.." && pwd)',
    `LD_LIBRARY_PATH="${searchPath}" exec "$here/root/${program}" "$@"`,
    '',
  ].join('\n');
  await writeFile(path.join(dir, 'bin', name), script, { mode: 0o755 });
}

async function firstFile(root: string, candidates: readonly string[]): Promise<string | undefined> {
  for (const candidate of candidates) {
    const content = await readFile(path.join(root, candidate)).catch(() => undefined);
    if (content) return candidate;
  }
  return undefined;
}
