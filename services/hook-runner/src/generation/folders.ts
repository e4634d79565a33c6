import { mkdir, readdir, readFile, rename, rm, rmdir, stat, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseValue, type Value } from '@colonnade/value';
import type { PolicyFolders } from '../policy-folders.ts';
import { policyOf, sealedNames } from './content.ts';

export const POLICY_FILE = 'pillar.json';

/** The pillar in a folder of policies; undefined: there is none. */
export async function readPolicy(folder: string): Promise<{ readonly [name: string]: Value } | undefined> {
  const text = await readFile(path.join(folder, POLICY_FILE)).catch(() => undefined);
  return text === undefined ? undefined : (parseValue(text) as { readonly [name: string]: Value });
}

/** The digest of the policies in a folder, as `policyOf` has it; undefined: there are none, or none that can be read. */
export async function readDigest(folder: string): Promise<string | undefined> {
  const pillar = await readPolicy(folder).catch(() => undefined);
  return pillar === undefined ? undefined : policyOf({ pillar, secrets: sealedNames(pillar) }).digest;
}

/** Writes the next policies of a minion, beside those in force; what a generation that was cut short has left goes. */
export async function writeNext({ next }: PolicyFolders, text: string): Promise<void> {
  // As nearly always, it is not there, and the folder above it is.
  const isMade = await mkdir(next, { mode: 0o700 }).then(
    () => true,
    () => false,
  );
  if (!isMade) {
    await rm(next, { recursive: true, force: true });
    await mkdir(next, { recursive: true, mode: 0o700 });
  }
  await writeFile(path.join(next, POLICY_FILE), text, { flag: 'wx', mode: 0o600, flush: true });
}

/**
 * Puts the next policies into force: those in force become the archive, the next ones take their place. A reader sees the old
 * ones, none for a moment, or the new ones; never a part. What dies between the two renames is ended by `repairFolders`; what
 * fails there puts the old ones back.
 */
export async function swapFolders({ current, next, archive }: PolicyFolders): Promise<void> {
  // Without any in force, those in the archive may be the only ones there are.
  if (await isThere(current)) {
    await removePolicies(archive);
    await rename(current, archive);
  }
  try {
    await rename(next, current);
  } catch (thrown) {
    await rename(archive, current).catch(() => {});
    throw thrown;
  }
}

/** A folder of policies holds one file, as a rule; whatever else is in it goes too. */
async function removePolicies(folder: string): Promise<void> {
  try {
    await unlink(path.join(folder, POLICY_FILE));
    await rmdir(folder);
  } catch {
    await rm(folder, { recursive: true, force: true });
  }
}

/** To seal a pillar purges what it was before; so nothing plain of it may stay in the archive. */
export async function dropUnsealed({ archive }: PolicyFolders, secrets: readonly string[]): Promise<void> {
  if (secrets.length === 0) return;
  const before = await readPolicy(archive).catch(() => undefined);
  const sealed = new Set(sealedNames(before ?? {}));
  const exposed = secrets.some((name) => before?.[name] !== undefined && !sealed.has(name));
  if (exposed) await rm(archive, { recursive: true, force: true });
}

/** Ends a swap that was cut short, and drops next policies nobody approved. */
export async function repairFolders({ current, next, archive }: PolicyFolders): Promise<void> {
  const [hasCurrent, hasNext, hasArchive] = await Promise.all([current, next, archive].map(isThere));
  // Only in the middle of a swap are there policies from before and none in force: then the next ones were approved.
  if (!hasCurrent && hasArchive) return await rename(hasNext ? next : archive, current);
  if (hasNext) await rm(next, { recursive: true, force: true });
}

/** Every minion that has a folder. */
export async function listFolders(stateDir: string): Promise<{ master: string; id: string }[]> {
  const share = path.join(stateDir, 'share');
  const found: { master: string; id: string }[] = [];
  for (const master of await readdir(share).catch(() => [])) {
    for (const id of await readdir(path.join(share, master)).catch(() => [])) found.push({ master, id });
  }
  return found;
}

export async function removeFolders({ current }: PolicyFolders): Promise<void> {
  await rm(path.dirname(current), { recursive: true, force: true });
}

async function isThere(file: string): Promise<boolean> {
  return await stat(file).then(
    () => true,
    () => false,
  );
}
