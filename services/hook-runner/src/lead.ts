import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquireFileLock, type FileLock, fileMark, type Hold, watchHold } from '@colonnade/service-kit';
import type { Events } from './events.ts';
import { endGroup } from './run/process-group.ts';
import { processBirth } from './store/process-birth.ts';
import { openRunStore, type RunStore } from './store/run-store.ts';

const RETRY_MS = 1000;
/** A busy kernel takes a moment to end what was sent KILL; what waits for a dead disk it cannot end. */
const DYING_MS = 5000;
const DYING_LOOK_MS = 5;

/**
 * Waits until this process leads, then does the work; over and over, until the signal. The lead is a lock of the operating
 * system on the state folder; with it comes a number, under which alone the store can be written. Who finds that another leads, or
 * that the lock or the store is not at its path any more, steps down: the work's own signal tells it.
 */
export async function leadUntil(
  options: { stateDir: string; graceMs: number },
  events: Events,
  work: (store: RunStore, lost: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const lockFile = path.join(options.stateDir, 'leader.lock');
  while (!signal.aborted) {
    try {
      mkdirSync(options.stateDir, { recursive: true, mode: 0o700 });
      using lock = await acquireFileLock(lockFile, signal, () => events.standsBy(lockFile));
      if (lock === undefined) return;
      using lead = openLead(path.join(options.stateDir, 'hooks.sqlite'), lock);
      events.leads(lockFile);
      await endOrphans(lead.store, options.graceMs, events);
      try {
        await work(lead.store, lead.lost);
      } finally {
        if (lead.lost.aborted) events.leadLost(lockFile);
      }
    } catch (error) {
      events.leadFailed(error);
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
}

/** The store under the lead, and the signal that it is lost. */
function openLead(file: string, lock: FileLock): Disposable & { store: RunStore; lost: AbortSignal } {
  let hold: Hold | undefined;
  const store = openRunStore(file, {
    isHeld: () => hold?.isHeld() === true,
    onLost: () => hold?.giveUp(),
  });
  const mark = fileMark(file);
  const held = watchHold(() => lock.isHeld() && fileMark(file) === mark);
  hold = held;
  return {
    store,
    lost: held.lost,
    [Symbol.dispose]() {
      held[Symbol.dispose]();
      store[Symbol.dispose]();
    },
  };
}

/** Hooks of a runner that was killed may still run. Nobody knows how far they came, and nothing may run beside them. */
async function endOrphans(store: RunStore, graceMs: number, events: Events): Promise<void> {
  for (const { pid, birth } of store.underWay()) {
    if (processBirth(pid) !== birth) continue;
    await endGroup(pid, graceMs);
    const deadline = performance.now() + DYING_MS;
    while (processBirth(pid) === birth && performance.now() < deadline) await sleep(DYING_LOOK_MS);
    events.orphanEnded(pid);
  }
}
