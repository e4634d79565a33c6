import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';

/** No install takes this long. */
const forgottenMs = 3_600_000;

/** Takes one line of progress for a person to read. */
export type Report = (text: string) => void;

/**
 * The folder where installed tools stay between runs: COLONNADE_CACHE (the bootstrap always sets it), else a
 * folder of the user's cache.
 */
export function toolsCache(env: NodeJS.ProcessEnv): string {
  if (env.COLONNADE_CACHE) return path.resolve(env.COLONNADE_CACHE);
  return path.join(env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'colonnade');
}

/** The environment of an installer: where the home cannot be written, a home inside the tools cache. */
export function installerEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (isWritable(path.join(homedir(), '.cache'))) return env;
  const home = path.join(toolsCache(env), 'home');
  return { ...env, HOME: home, XDG_CACHE_HOME: path.join(home, '.cache') };
}

function isWritable(dir: string): boolean {
  try {
    makeDir(dir);
    accessSync(dir, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** One folder after the other: Node.js's own recursive way never ends where none can be made, as below /proc. */
function makeDir(dir: string): void {
  if (existsSync(dir)) return;
  makeDir(path.dirname(dir));
  try {
    mkdirSync(dir);
  } catch (error) {
    // Another process may have made it just now.
    if (!existsSync(dir)) throw error;
  }
}

/** Every file of that name on the PATH, in its order. */
export function findOnPath(name: string, env: NodeJS.ProcessEnv): string[] {
  const dirs = (env.PATH ?? '').split(path.delimiter).filter((dir) => path.isAbsolute(dir));
  return dirs.map((dir) => path.join(dir, name)).filter((file) => existsSync(file));
}

/**
 * Fills `dir` once: `build` works in a folder beside it, which is renamed when complete. Nobody sees half of it,
 * and of two runs at once the slower one drops its copy.
 */
export async function installOnce(dir: string, build: (partial: string) => Promise<void>): Promise<void> {
  if (existsSync(dir)) return;
  const partial = `${dir}.${randomUUID()}.partial`;
  try {
    await mkdir(partial, { recursive: true });
    await dropForgotten(dir);
    await build(partial);
    await rename(partial, dir).catch((error: unknown) => {
      if (!existsSync(dir)) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** Half-made folders of runs that were killed; one being made is younger. */
async function dropForgotten(dir: string): Promise<void> {
  for (const name of await readdir(path.dirname(dir))) {
    if (!name.startsWith(`${path.basename(dir)}.`) || !name.endsWith('.partial')) continue;
    const file = path.join(path.dirname(dir), name);
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > forgottenMs) await rm(file, { recursive: true, force: true });
  }
}

export type CommandOptions = { cwd?: string; env?: NodeJS.ProcessEnv; limitMs?: number };

/**
 * Runs a command to its end.
 * @returns what it wrote to its standard output
 * @throws ColonnadeError `unavailable` with the last lines it printed
 */
export async function runCommand(
  command: string,
  args: readonly string[],
  { cwd, env, limitMs = 15 * 60_000 }: CommandOptions = {},
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: limitMs });
  let out = '';
  let all = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
    all += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    all += text;
  });
  const fail = (reason: string, cause?: unknown) => {
    const shown = [path.basename(command), ...args.slice(0, 3)].join(' ');
    const last = all.trim().split('\n').slice(-5).join('\n');
    reject(new ColonnadeError('unavailable', `"${shown}" ${reason}${last && `: ${last}`}`, { cause }));
  };
  child.on('error', (error) => fail('could not be run', error));
  child.on('close', (code, signal) => {
    if (code === 0) resolve(out);
    else fail(signal ? `was ended by ${signal}` : `ended with exit code ${code}`);
  });
  return await promise;
}
