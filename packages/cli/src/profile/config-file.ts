import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { decode, int } from '@colonnade/contracts';
import { canonicalText, fromPlain } from '@colonnade/value';
import { z } from 'zod';
import { usageError } from '../exit-codes.ts';

const zProfile = z.strictObject({
  url: z.string(),
  token: z.string().optional(),
  ca_file: z.string().optional(),
  nats_url: z.string().optional(),
  nats_nkey_file: z.string().optional(),
  nats_ca_file: z.string().optional(),
});
export type Profile = z.infer<typeof zProfile>;

const zProfiles = z.strictObject({
  version: int({ min: 1, max: 1 }),
  current: z.string(),
  profiles: z.record(z.string(), zProfile),
});
export type Profiles = z.infer<typeof zProfiles>;

const NONE: Profiles = { version: 1, current: 'default', profiles: {} };

/** `$XDG_CONFIG_HOME/colonnade/profiles.json` */
function profilesPath(env: NodeJS.ProcessEnv): string {
  const base = env.XDG_CONFIG_HOME;
  // By the XDG specification a relative path there counts for nothing.
  const dir = base && path.isAbsolute(base) ? base : path.join(homedir(), '.config');
  return path.join(dir, 'colonnade', 'profiles.json');
}

/** @throws ColonnadeError `misconfigured`: others may read it, it is not ours, or it is broken */
export function readProfiles(env: NodeJS.ProcessEnv): Profiles {
  const file = profilesPath(env);
  const text = readPrivate(file, 'the profile file');
  if (text === undefined) return NONE;
  try {
    return decode(zProfiles, text);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : '';
    throw usageError(`${file} is broken (${why}): mend it, or remove it and log in again`);
  }
}

/** Whole or not at all, and never readable for others. */
export async function writeProfiles(env: NodeJS.ProcessEnv, profiles: Profiles): Promise<string> {
  const file = profilesPath(env);
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomBytes(4).toString('hex')}`;
  try {
    const text = canonicalText(fromPlain(JSON.parse(JSON.stringify(profiles))));
    await writeFile(draft, `${text}\n`, { mode: 0o600, flag: 'wx' });
    await rename(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
  return file;
}

/**
 * The text of a file that only its owner can read; undefined when there is none.
 * @throws ColonnadeError `misconfigured` when others can, or it cannot be read
 */
export function readPrivate(file: string, what: string): string | undefined {
  try {
    const { mode, uid } = lstatSync(file);
    const ours = process.getuid?.();
    if ((mode & 0o170000) === 0o100000) {
      if ((mode & 0o077) !== 0) {
        const shown = (mode & 0o777).toString(8).padStart(3, '0');
        throw usageError(`${what} ${file} has mode 0${shown}, so others may read it: chmod 600 ${file}`);
      }
      if (ours !== undefined && ours !== 0 && uid !== ours) {
        throw usageError(`${what} ${file} belongs to somebody else`);
      }
    }
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (thrown instanceof Error && 'syscall' in thrown) {
      throw usageError(`${what} ${file} cannot be read: ${String((thrown as NodeJS.ErrnoException).code)}`);
    }
    throw thrown;
  }
}
