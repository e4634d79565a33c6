import { constants } from 'node:fs';
import { access, open, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { hasIgnoredSuffix } from './ignored-suffixes.ts';
import { HEAD_BYTES, readStatedTimeouts, type StatedTimeouts } from './timeouts.ts';

/** One executable of an event's folder. */
export type Hook = {
  name: string;
  file: string;
  stated: StatedTimeouts;
  /** Why it cannot be run although it is one; it then counts as failed, not as absent. */
  fault: string | undefined;
};

/** Something in the folder that is no hook, and why. */
export type Ignored = { name: string; why: 'suffix' | 'not executable' | 'no regular file' };

export type Listing = { hooks: readonly Hook[]; ignored: readonly Ignored[] };

/**
 * The hooks of a folder in the order they run: that of their names' bytes (seed 002). A folder that is not there has none.
 * Links count as what they lead to.
 * @throws ColonnadeError `unavailable` when the folder cannot be read: nobody knows then what a hook would say
 */
export async function listHooks(folder: string, ignoredSuffixes: readonly string[]): Promise<Listing> {
  const names = (await readNames(folder)).sort(Buffer.compare);
  const entries = await Promise.all(names.map((name) => classify(folder, name, ignoredSuffixes)));
  return {
    hooks: entries.filter((entry): entry is Hook => 'file' in entry),
    ignored: entries.filter((entry): entry is Ignored => 'why' in entry),
  };
}

async function readNames(folder: string): Promise<Buffer[]> {
  try {
    return await readdir(folder, { encoding: 'buffer' });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new ColonnadeError('unavailable', `the hooks of ${path.basename(folder)} cannot be listed`, {
      cause: thrown,
    });
  }
}

async function classify(folder: string, bytes: Buffer, suffixes: readonly string[]): Promise<Hook | Ignored> {
  const name = bytes.toString('utf8');
  const where = Buffer.concat([Buffer.from(`${folder}/`), bytes]);
  if (hasIgnoredSuffix(name, suffixes)) return { name, why: 'suffix' };
  const facts = await stat(where).catch(() => undefined);
  if (!facts?.isFile()) return { name, why: 'no regular file' };
  const executable = await access(where, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!executable) return { name, why: 'not executable' };
  const exact = Buffer.from(name).equals(bytes);
  return {
    name,
    file: path.join(folder, name),
    stated: await readHead(where),
    // Node.js takes names of programs as text only.
    fault: exact ? undefined : 'could not be started: its name is not UTF-8',
  };
}

/** A hook that may be run but not read states nothing. */
async function readHead(file: Buffer): Promise<StatedTimeouts> {
  try {
    await using handle = await open(file, 'r');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    return readStatedTimeouts(buffer.subarray(0, bytesRead));
  } catch {
    return { faults: ['its timeouts cannot be read'] };
  }
}
