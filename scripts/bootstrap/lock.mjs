// One install at a time: a lock file that names its owner, so that a lock left by a killed run is not in the way.
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { report } from './steps.mjs';

/** Longer than any install takes: an owner on another host cannot be asked whether it lives. */
const forgottenMs = 20 * 60_000;
/** A lock file is created first and filled next. */
const fillingMs = 10_000;

/**
 * Runs `work` while holding the lock file.
 * @template T
 * @param {string} file
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withLock(file, work) {
  await mkdir(path.dirname(file), { recursive: true });
  const me = `${process.pid} ${os.hostname()} ${randomBytes(6).toString('hex')}`;
  let told = false;
  while (!(await take(file, me))) {
    if (await dropStale(file)) continue;
    if (!told) report(`waiting for another run that is installing (lock ${file})`);
    told = true;
    await delay(200);
  }
  try {
    return await work();
  } finally {
    if ((await readOwner(file)) === me) await unlink(file).catch(() => {});
  }
}

/**
 * @param {string} file
 * @param {string} me
 */
async function take(file, me) {
  try {
    await writeFile(file, me, { flag: 'wx' });
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Takes a dead owner's lock away. The rename lets only one of several waiters do it.
 * @param {string} file
 * @returns {Promise<boolean>} whether it is worth trying again at once
 */
async function dropStale(file) {
  const owner = await readOwner(file);
  if (owner === undefined) return true;
  const info = await stat(file).catch(() => undefined);
  if (!info) return true;
  if (!isStale(owner, Date.now() - info.mtimeMs)) return false;
  const aside = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    await rename(file, aside);
  } catch {
    return true;
  }
  const taken = await readOwner(aside);
  // Between the look and the rename a new owner may have come: give it back.
  if (taken !== owner) await rename(aside, file);
  else await unlink(aside);
  return true;
}

/**
 * @param {string} owner
 * @param {number} ageMs
 */
function isStale(owner, ageMs) {
  if (owner === '') return ageMs > fillingMs;
  const [pid, host] = owner.split(' ');
  if (host !== os.hostname()) return ageMs > forgottenMs;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'ESRCH';
  }
}

/** @param {string} file */
async function readOwner(file) {
  return await readFile(file, 'utf8').catch(() => undefined);
}
