import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, realpath, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { toolsCache } from '@colonnade/embedded/servers';
import { withLock } from './lock.ts';

const run = promisify(execFile);
const names = ['python3', 'python3.12', 'python3.11', 'python3.10'];
/** Salt's releases of these years run on these; what they need has no wheels for others. */
const oldest = [3, 10];
const newest = [3, 12];

/** A Python that can make virtual environments: its command and version. @throws Error that says what to install */
export async function findPython(): Promise<{ command: string; version: string }> {
  const probe = 'import ensurepip, sys, venv; print("%d.%d.%d" % sys.version_info[:3])';
  for (const command of names) {
    const found = await run(command, ['-c', probe]).catch(() => undefined);
    const version = found?.stdout.trim() ?? '';
    if (isBetween(version)) return { command, version };
  }
  throw new Error(
    'no Python 3.10 to 3.12 with venv was found; install it with: sudo apt-get install python3-venv',
  );
}

function isBetween(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major === oldest[0] && minor >= (oldest[1] as number) && minor <= (newest[1] as number);
}

/**
 * A virtual environment with exactly these pinned requirements, made once and kept in the tools cache.
 * It appears whole or not at all; of several who ask at once one makes it and the others wait.
 * @param name for people; the folder's name is completed by a hash of Python's version and the requirements
 * @returns the path of its Python
 * @throws Error with the end of what pip said
 */
export async function ensureVenv(name: string, requirements: readonly string[]): Promise<string> {
  const python = await findPython();
  const identity = JSON.stringify([python.version, [...requirements].sort()]);
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 16);
  const cache = toolsCache(process.env);
  const link = path.join(cache, `venv-${name}-${hash}`);
  await mkdir(cache, { recursive: true });
  while (!existsSync(link)) {
    await withLock(`${link}.lock`, async () => {
      if (!existsSync(link)) await build(link, python.command, requirements);
    });
  }
  return path.join(await realpath(link), 'bin', 'python');
}

/** An environment holds its own path, so it is made where it stays, and the name is given to it when it is complete. */
async function build(link: string, python: string, requirements: readonly string[]): Promise<void> {
  const dir = `${link}.${randomBytes(4).toString('hex')}`;
  try {
    await say(python, ['-m', 'venv', dir]);
    const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '--quiet'];
    if (requirements.length > 0) await say(path.join(dir, 'bin', 'python'), [...pip, ...requirements]);
    const draft = `${dir}.link`;
    await symlink(path.basename(dir), draft);
    await rename(draft, link);
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

async function say(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4_000);
    });
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.on('error', reject);
  child.on('close', (code) => {
    if (code === 0) resolve();
    else
      reject(
        new Error(`${command} ${args.slice(0, 3).join(' ')} ended with exit code ${code}: ${said.trim()}`),
      );
  });
  await promise;
}

/** The requirements a file lists, a line each; lines that begin with `#` are comments. */
export async function readRequirements(file: string): Promise<string[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '' && !line.startsWith('#'));
}
