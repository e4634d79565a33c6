import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { findOnPath, installOnce, runCommand, toolsCache } from '@colonnade/embedded/servers';
import { withLock } from './lock.ts';

/** What to hand to a test's `skip`: false where Go programs can be built, else why not. */
export function skipWithoutGo(): false | string {
  return findOnPath('go', process.env).length > 0 ? false : 'no go on the PATH: install Go 1.26 or later';
}

/**
 * Builds the Go program in a folder, once for each state of its sources, into the tools cache. Of several who ask at once
 * one builds and the others wait. The first build compiles its dependencies, for a minute or two, politely.
 * @returns the program's path
 * @throws ColonnadeError `unavailable` with the compiler's last lines
 */
export async function buildGo(dir: string): Promise<string> {
  const name = path.basename(dir);
  const folder = `go-${name}-${await hashSources(dir)}-${process.platform}-${process.arch}`;
  const target = path.join(toolsCache(process.env), folder);
  if (!existsSync(target)) {
    await mkdir(path.dirname(target), { recursive: true });
    await withLock(`${target}.lock`, () =>
      installOnce(target, (partial) => compile(dir, path.join(partial, name))),
    );
  }
  return path.join(target, name);
}

async function compile(dir: string, program: string): Promise<void> {
  const flags = ['-trimpath', '-ldflags=-s -w', '-mod=readonly', '-buildvcs=false'];
  await runCommand('nice', ['-n', '19', 'go', 'build', ...flags, '-o', program, '.'], {
    cwd: dir,
    env: { ...process.env, GOFLAGS: '-p=1', CGO_ENABLED: '0' },
  });
}

async function hashSources(dir: string): Promise<string> {
  const files = (await readdir(dir)).filter((file) => /\.go$|^go\.(?:mod|sum)$/u.test(file)).sort();
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(await readFile(path.join(dir, file)));
  return hash.digest('hex').slice(0, 16);
}
