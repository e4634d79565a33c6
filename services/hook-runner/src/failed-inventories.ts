import { chmod, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { HookRunnerConfig } from './config.ts';
import type { PlannedRun } from './plan-run.ts';

/** Whoever may send inventories decides how many fail: beyond this many files the oldest go, so many at a time. */
const MOST_FILES = 1000;
const DROPPED_AT_ONCE = 100;

export function inventoryFolder({ stateDir }: Pick<HookRunnerConfig, 'stateDir'>): string {
  return path.join(stateDir, 'inventories', 'failed');
}

/**
 * Writes an inventory that could not be used to a file, for its hooks. The same name at every try: what an earlier one has written
 * is written over.
 * @returns the parameter that says where it is; none for any other run
 */
export async function placeInventory(
  config: Pick<HookRunnerConfig, 'stateDir'>,
  { id, inventory }: Pick<PlannedRun, 'id' | 'inventory'>,
  mostFiles: number = MOST_FILES,
): Promise<Record<string, string>> {
  if (inventory === undefined) return {};
  const folder = inventoryFolder(config);
  const file = path.join(folder, `${id.replaceAll(':', '-')}.json`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await rm(file, { force: true });
  await makeRoom(folder, mostFiles);
  await writeFile(file, inventory, { mode: 0o600 });
  await chmod(file, 0o600);
  return { RUDDER_INVENTORY_PATH: file };
}

/** The oldest are those whose hooks have ended long since. */
async function makeRoom(folder: string, mostFiles: number): Promise<void> {
  const names = await readdir(folder);
  if (names.length < mostFiles) return;
  const aged = await Promise.all(
    names.map(async (name) => {
      const file = path.join(folder, name);
      return { file, ms: (await stat(file).catch(() => undefined))?.mtimeMs ?? 0 };
    }),
  );
  const count = names.length - mostFiles + Math.min(DROPPED_AT_ONCE, mostFiles);
  for (const { file } of aged.sort((a, b) => a.ms - b.ms).slice(0, count)) await rm(file, { force: true });
}
