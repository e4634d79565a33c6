import { randomUUID } from 'node:crypto';
import { constants, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { link, open, rename, rm, unlink } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError, decode, encode } from '@colonnade/contracts';
import type { z } from 'zod';

/** Far above what any of our files needs; a larger one is not ours. */
const MAX_FILE_BYTES = 1024 * 1024;
const TEMP_PREFIX = '.tmp-';
const TEMP_KEEP_MS = 60 * 60 * 1000;

/**
 * Makes a folder of ours (0700) with its parents, or checks the one that is there. Temporary files that a killed
 * process left behind are removed when they are old: a younger one may be another replica's.
 * @throws ColonnadeError `misconfigured`
 */
export function openStateDir(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const stat = statSync(dir);
    if ((stat.mode & 0o077) !== 0)
      throw new ColonnadeError('misconfigured', `${dir} is open to others: chmod 700`);
    for (const name of readdirSync(dir)) {
      if (!name.startsWith(TEMP_PREFIX)) continue;
      const temp = path.join(dir, name);
      const age = Date.now() - (statSync(temp, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > TEMP_KEEP_MS) rmSync(temp, { force: true });
    }
  } catch (thrown) {
    if (thrown instanceof ColonnadeError) throw thrown;
    throw new ColonnadeError('misconfigured', `the state folder ${dir} cannot be used`, { cause: thrown });
  }
}

/** Names of the entries of a state folder, without temporary files. @throws ColonnadeError `unavailable` */
export function listStateDir(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => !name.startsWith('.'));
  } catch (thrown) {
    throw stateFault(thrown);
  }
}

/**
 * Reads a JSON file of ours.
 * @returns undefined when there is none
 * @throws ColonnadeError `misconfigured` when it is open to others or not what the schema says; nothing is changed
 */
export async function readStateFile<S extends z.ZodType>(
  file: string,
  schema: S,
): Promise<z.output<S> | undefined> {
  const bytes = await readPrivate(file);
  if (bytes === undefined) return undefined;
  try {
    return decode(schema, bytes);
  } catch (thrown) {
    // The fault names fields and places, never content.
    const why = thrown instanceof ColonnadeError ? thrown.message : 'unreadable';
    throw new ColonnadeError(
      'misconfigured',
      `${file} is not a file of this service: ${why}. Restore it from a backup, or move it away`,
    );
  } finally {
    bytes.fill(0);
  }
}

/**
 * Makes a file that is not there yet; of several processes that try at once exactly one succeeds, and nobody ever sees
 * a part of it.
 * @returns false when it is there already
 */
export async function createStateFile<S extends z.ZodType>(
  file: string,
  schema: S,
  content: z.output<S>,
): Promise<boolean> {
  const temp = await writeTemp(path.dirname(file), encode(schema, content));
  try {
    await link(temp, file);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw stateFault(thrown);
  } finally {
    await rm(temp, { force: true });
  }
  await syncDir(path.dirname(file));
  return true;
}

/** Replaces a file whole. */
export async function replaceStateFile<S extends z.ZodType>(
  file: string,
  schema: S,
  content: z.output<S>,
): Promise<void> {
  const dir = path.dirname(file);
  const temp = await writeTemp(dir, encode(schema, content));
  try {
    await rename(temp, file);
  } catch (thrown) {
    await rm(temp, { force: true });
    throw stateFault(thrown);
  }
  await syncDir(dir);
}

/** @returns false when there was none */
export async function removeStateFile(file: string): Promise<boolean> {
  try {
    // Of several at once exactly one takes it away; `rm` would let all of them believe so.
    await unlink(file);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw stateFault(thrown);
  }
  await syncDir(path.dirname(file));
  return true;
}

/** What the file system says, as an error of ours. */
export function stateFault(thrown: unknown): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  return new ColonnadeError('unavailable', 'the state folder of the KMS cannot be read or written', {
    cause: thrown,
  });
}

async function readPrivate(file: string): Promise<Buffer | undefined> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
    const stat = await handle.stat();
    if ((stat.mode & 0o077) !== 0)
      throw new ColonnadeError('misconfigured', `${file} is open to others: chmod 600`);
    if (stat.size > MAX_FILE_BYTES)
      throw new ColonnadeError('misconfigured', `${file} is too large to be a file of this service`);
    return await handle.readFile();
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw stateFault(thrown);
  }
}

async function writeTemp(dir: string, bytes: Uint8Array): Promise<string> {
  const temp = path.join(dir, `${TEMP_PREFIX}${process.pid}-${randomUUID()}`);
  try {
    await using handle = await open(temp, 'wx', 0o600);
    await handle.writeFile(bytes);
    await handle.sync();
    return temp;
  } catch (thrown) {
    await rm(temp, { force: true });
    throw stateFault(thrown);
  } finally {
    bytes.fill(0);
  }
}

async function syncDir(dir: string): Promise<void> {
  await using handle = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  await handle.sync();
}
