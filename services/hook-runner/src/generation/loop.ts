import { setTimeout as sleep } from 'node:timers/promises';
import type { HookRunnerConfig } from '../config.ts';
import { policyFolders } from '../policy-folders.ts';
import { listFolders, repairFolders } from './folders.ts';
import { type GenerationDeps, generate } from './generate.ts';

/** Disposing ends it, after the minion under way. */
export type Generations = AsyncDisposable & {
  /** Something is to be generated. */
  wake(): void;
};

/** Changes that no event tells of (a generation that was stopped by a hook) are looked at again after this. */
const LOOK_EVERY_MS = 60_000;
const RETRY_MS = 5000;

/**
 * Generates whenever something is touched, one generation after the other, until the signal. Changes shortly after each
 * other share one; changes during one join the next.
 */
export function startGenerations(config: HookRunnerConfig, deps: GenerationDeps): Generations {
  const ending = new AbortController();
  const taking = AbortSignal.any([deps.stop.taking, ending.signal]);
  const bell = createBell(taking);
  const running = run(config, { ...deps, stop: { ...deps.stop, taking } }, bell);
  return {
    wake: bell.ring,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await running;
    },
  };
}

async function run(config: HookRunnerConfig, deps: GenerationDeps, bell: Bell): Promise<void> {
  const { store, events } = deps;
  const signal = deps.stop.taking;
  for (const { master, id } of await listFolders(config.stateDir)) {
    await repairFolders(policyFolders(config.stateDir, master, id));
  }
  let lastId = store.history(1)[0]?.id ?? '';
  for (let pauseMs = 0; !signal.aborted; ) {
    if (pauseMs > 0 || store.pending() === undefined) await bell.wait(pauseMs || LOOK_EVERY_MS);
    await sleep(config.generationDebounceMs, undefined, { signal }).catch(() => {});
    const pending = store.pending();
    pauseMs = 0;
    if (signal.aborted || pending === undefined) continue;
    try {
      lastId = nextId(lastId);
      const { status } = await generate(pending, lastId, config, deps);
      // What a hook has stopped stays to be done: a while later, or with the next change.
      const left = store.pending();
      if (status === 'failed' && left !== undefined) {
        pauseMs = left.upTo === pending.upTo ? LOOK_EVERY_MS : RETRY_MS;
      }
    } catch (error) {
      events.generationBroken(lastId, error);
      pauseMs = RETRY_MS;
    }
  }
}

/** Its date is its name, so no two may have the same. */
function nextId(last: string): string {
  const now = new Date().toISOString();
  return now > last ? now : new Date(Date.parse(last) + 1).toISOString();
}

type Bell = { ring(): void; wait(ms: number): Promise<void> };

/** A ring that comes while nobody waits is not lost. */
function createBell(signal: AbortSignal): Bell {
  let rung = new AbortController();
  return {
    ring: () => rung.abort(),
    async wait(ms) {
      const either = AbortSignal.any([signal, rung.signal]);
      if (!either.aborted) await sleep(ms, undefined, { signal: either }).catch(() => {});
      rung = new AbortController();
    },
  };
}
