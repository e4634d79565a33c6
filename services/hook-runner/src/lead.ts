import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireFileLock } from '@colonnade/service-kit';
import type { Events } from './events.ts';
import { endGroup } from './run/process-group.ts';
import { processBirth } from './store/process-birth.ts';
import { openRunStore, type RunStore } from './store/run-store.ts';

const RETRY_MS = 1000;

/**
 * Waits until this process leads, then does the work; over and over, until the signal. The lead is a lock of the operating
 * system on the state folder; with it comes a number, under which alone the store can be written.
 */
export async function leadUntil(
  options: { stateDir: string; graceMs: number },
  events: Events,
  work: (store: RunStore) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const lockFile = path.join(options.stateDir, 'leader.lock');
  while (!signal.aborted) {
    try {
      mkdirSync(options.stateDir, { recursive: true, mode: 0o700 });
      using lock = await acquireFileLock(lockFile, signal, () => events.standsBy(lockFile));
      if (lock === undefined) return;
      using store = openRunStore(path.join(options.stateDir, 'hooks.sqlite'));
      events.leads(lockFile);
      await endOrphans(store, options.graceMs, events);
      await work(store);
    } catch (error) {
      events.leadFailed(error);
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** Hooks of a runner that was killed may still run. Nobody knows how far they came, and nothing may run beside them. */
async function endOrphans(store: RunStore, graceMs: number, events: Events): Promise<void> {
  for (const { pid, birth } of store.underWay()) {
    if (processBirth(pid) !== birth) continue;
    await endGroup(pid, graceMs);
    events.orphanEnded(pid);
  }
}
