import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { HookRunnerConfig } from './config.ts';
import type { Events } from './events.ts';
import { inventoryFolder } from './failed-inventories.ts';
import type { RunStore } from './store/run-store.ts';

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Forgets runs, and inventories that could not be used, when they are older than the history goes. */
export function keepTidy(config: HookRunnerConfig, store: RunStore, events: Events): Disposable {
  const look = () => {
    const before = Date.now() - config.historyDays * DAY_MS;
    try {
      store.forgetBefore(before);
      store.generations.forgetBefore(before);
    } catch (error) {
      events.pruneFailed(error);
    }
    void removeBefore(inventoryFolder(config), before).catch(events.pruneFailed);
  };
  look();
  const timer = setInterval(look, EVERY_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function removeBefore(folder: string, ms: number): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const file = path.join(folder, name);
    const facts = await stat(file).catch(() => undefined);
    if (facts !== undefined && facts.mtimeMs < ms) await rm(file, { force: true });
  }
}
