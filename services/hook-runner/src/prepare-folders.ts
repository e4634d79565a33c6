import { cp, mkdir, stat } from 'node:fs/promises';
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
    await cp(path.join(SHIPPED, name), folder, { recursive: true });
    made.push(name);
  }
  return made;
}
