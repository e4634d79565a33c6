import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bus } from '@colonnade/bus';
import { ColonnadeError, LIMITS, mergerRefresh, startCall, zMasterId, zMinionId } from '@colonnade/contracts';
import type { HookRunnerConfig } from './config.ts';
import type { Events } from './events.ts';

/** Hooks put lists of minions in here; see `policy-generation-finished/50-salt-refresh-pillar`. */
export function refreshFolder(stateDir: string): string {
  return path.join(stateDir, 'refresh');
}

const LOOK_EVERY_MS = 500;
const RETRY_MS = 5000;
const BUDGET_MS = 5000;
/** A list that is being written. */
const UNFINISHED = '.new';

/**
 * Tells masters whom to refresh, list after list, until the signal. A list goes when all its masters have been told, so each is
 * told at least once; one that could not be told for too long is dropped, and the log says so.
 */
export async function tellRefreshes(
  config: Pick<HookRunnerConfig, 'stateDir' | 'refreshKeepMs'>,
  bus: Pick<Bus, 'request'>,
  events: Events,
  signal: AbortSignal,
): Promise<void> {
  const folder = refreshFolder(config.stateDir);
  while (!signal.aborted) {
    const isWell = await tellLists(folder, config.refreshKeepMs, bus, events, signal);
    await sleep(isWell ? LOOK_EVERY_MS : RETRY_MS, undefined, { signal }).catch(() => {});
  }
}

/** A list that cannot be told holds up those after it only when nobody can be told anything now. @returns whether all was told */
async function tellLists(
  folder: string,
  keepMs: number,
  bus: Pick<Bus, 'request'>,
  events: Events,
  signal: AbortSignal,
): Promise<boolean> {
  let isWell = true;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const entries = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile());
    const names = entries.map(({ name }) => name).filter((name) => !name.endsWith(UNFINISHED));
    for (const name of names.sort()) {
      if (signal.aborted) break;
      try {
        await tellList(path.join(folder, name), keepMs, bus, events);
      } catch (error) {
        if (error instanceof ColonnadeError && error.retryable) throw error;
        isWell = false;
        events.refreshFailed(error);
      }
    }
    return isWell;
  } catch (error) {
    events.refreshFailed(error);
    return false;
  }
}

async function tellList(
  file: string,
  keepMs: number,
  bus: Pick<Bus, 'request'>,
  events: Events,
): Promise<void> {
  const generation = path.basename(file).slice(0, 64);
  const { byMaster, bad } = parseRefreshList(await readFile(file, 'utf8'));
  const count = [...byMaster.values()].reduce((sum, minions) => sum + minions.length, 0);
  if (bad > 0) events.refreshUnreadable(generation, bad);
  if (Date.now() - (await stat(file)).mtimeMs > keepMs) {
    events.refreshDropped(generation, count);
  } else {
    for (const [master, minions] of byMaster) {
      for (let i = 0; i < minions.length; i += LIMITS.refreshMinions) {
        const some = minions.slice(i, i + LIMITS.refreshMinions);
        await bus.request(mergerRefresh, { master, generation, minions: some }, startCall(BUDGET_MS));
      }
    }
    if (count > 0) events.refreshTold(generation, byMaster.size, count);
  }
  await rm(file);
}

/** Lines of `master/minion`; what begins with `#` is a comment. Lines that are neither are counted and left out. */
export function parseRefreshList(text: string): {
  byMaster: ReadonlyMap<string, readonly string[]>;
  bad: number;
} {
  const byMaster = new Map<string, Set<string>>();
  let bad = 0;
  for (const line of text.split('\n').filter((one) => one !== '' && !one.startsWith('#'))) {
    const slash = line.indexOf('/');
    const master = zMasterId.safeParse(line.slice(0, Math.max(0, slash)));
    const minion = zMinionId.safeParse(line.slice(slash + 1));
    if (!master.success || !minion.success) {
      bad += 1;
      continue;
    }
    const minions = byMaster.get(master.data) ?? new Set();
    byMaster.set(master.data, minions.add(minion.data));
  }
  return { byMaster: new Map([...byMaster].map(([master, minions]) => [master, [...minions]])), bad };
}
