// Where tools are kept between runs, and how two runs at once share that place.
import { randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { StepError } from './steps.mjs';

/**
 * @param {string} dir
 * @returns {boolean} whether the folder exists (it is made if need be) and takes new files
 */
export function isWritable(dir) {
  try {
    makeDir(dir);
    accessSync(dir, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * One folder after the other: Node.js's own recursive way never ends where none can be made, as below /proc.
 * @param {string} dir
 */
function makeDir(dir) {
  if (existsSync(dir)) return;
  makeDir(path.dirname(dir));
  try {
    mkdirSync(dir);
  } catch (error) {
    // Another run may have made it just now.
    if (!existsSync(dir)) throw error;
  }
}

/**
 * The tools cache: COLONNADE_CACHE, else a folder of the user's cache, else one inside the checkout.
 * @param {string} root the checkout
 * @param {NodeJS.ProcessEnv} env
 * @returns {string} an absolute, writable folder
 */
export function resolveCache(root, env) {
  const asked = env.COLONNADE_CACHE;
  if (asked) {
    const dir = path.resolve(asked);
    if (isWritable(dir)) return dir;
    throw new StepError('The tools cache cannot be written', {
      where: dir,
      fix: 'Set COLONNADE_CACHE to a folder that can be, or unset it.',
    });
  }
  const base = env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
  const candidates = [path.join(base, 'colonnade'), path.join(root, '.colonnade', 'cache')];
  const found = candidates.find((dir) => path.isAbsolute(dir) && isWritable(dir));
  if (found) return found;
  throw new StepError('No folder for tools can be written', {
    where: candidates.join(' and '),
    fix: 'Set COLONNADE_CACHE to a folder that can be.',
  });
}

/**
 * Fills `dir` once: `build` works in a folder beside it, which is renamed when complete, so that nobody ever
 * sees half of it and a killed run leaves nothing that looks installed. The caller holds the lock of `dir`.
 * @param {string} dir
 * @param {(partial: string) => Promise<void>} build
 */
export async function installOnce(dir, build) {
  if (existsSync(dir)) return;
  const partial = `${dir}.${randomUUID()}.partial`;
  try {
    await dropPartials(dir);
    await mkdir(partial, { recursive: true });
    await build(partial);
    await rename(partial, dir).catch((error) => {
      // Another run was faster: its copy is as good as ours.
      if (!existsSync(dir)) throw error;
    });
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/**
 * What killed runs left: with the lock held nobody else is making one.
 * @param {string} dir
 */
async function dropPartials(dir) {
  for (const name of await readdir(path.dirname(dir))) {
    if (!name.startsWith(`${path.basename(dir)}.`) || !name.endsWith('.partial')) continue;
    await rm(path.join(path.dirname(dir), name), { recursive: true, force: true });
  }
}
