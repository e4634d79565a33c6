import { cp, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { HOOK_EVENT_NAMES } from './run/hook-events.ts';

/** The folders this program brings along, each with a README and an example that is off. */
const SHIPPED = path.join(import.meta.dirname, '..', 'hooks.d');

/**
 * Makes the folders of events that are not there, as they are shipped. A folder that is there stays as it is, empty or not.
 * @returns the names of those it made
 * @throws Error of the file system
 */
export async function prepareFolders(hooksDir: string): Promise<string[]> {
  await mkdir(hooksDir, { recursive: true, mode: 0o755 });
  const made: string[] = [];
  for (const name of HOOK_EVENT_NAMES) {
    const folder = path.join(hooksDir, name);
    const there = await stat(folder).catch(() => undefined);
    if (there !== undefined) continue;
    if (await copyWhole(path.join(SHIPPED, name), folder)) made.push(name);
  }
  return made;
}

/**
 * Beside its place first: a copy that is cut short would stay so, as a folder that is there, and may lack the hook that is shipped with it.
 * @returns false: another runner has made it meanwhile
 */
async function copyWhole(from: string, to: string): Promise<boolean> {
  const beside = await mkdtemp(`${to}.new-`);
  try {
    const whole = path.join(beside, path.basename(to));
    await cp(from, whole, { recursive: true });
    return await rename(whole, to).then(
      () => true,
      (thrown: NodeJS.ErrnoException) => {
        if (thrown.code === 'ENOTEMPTY' || thrown.code === 'EEXIST') return false;
        throw thrown;
      },
    );
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}
