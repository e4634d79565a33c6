import { setTimeout as wait } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import type { Pending } from '../store/touches.ts';
import { checkFolders } from './check-folders.ts';
import { type GenerationDeps, generate } from './generate.ts';
import { createPatience, type Pause, RETRY_MS } from './patience.ts';

/** Disposing ends it, after the minion under way. */
export type Generations = AsyncDisposable & {
  /** Something is to be generated. */
  wake(): void;
};

/** Changes that no event tells of (a generation that was stopped by a hook) are looked at again after this. */
const LOOK_EVERY_MS = 60_000;

/**
 * Generates whenever something is touched, one generation after the other, until the signal. Changes shortly after each
 * other share one; changes during one join the next.
 */
export function startGenerations(
  config: HookRunnerConfig,
  deps: GenerationDeps,
  sleep: Sleep = sleepUnlessAborted,
): Generations {
  const ending = new AbortController();
  const taking = AbortSignal.any([deps.stop.taking, ending.signal]);
  const bell = createBell(taking, sleep);
  const running = keepRunning(config, { ...deps, stop: { ...deps.stop, taking } }, bell, sleep);
  return {
    wake: bell.ring,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await running;
    },
  };
}

/** Ends after so many milliseconds, or with the signal. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

async function sleepUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => {});
}

/** Nobody waits for it before the end: what it throws (the store cannot be read) is told of, and it begins anew. */
async function keepRunning(
  config: HookRunnerConfig,
  deps: GenerationDeps,
  bell: Bell,
  sleep: Sleep,
): Promise<void> {
  const signal = deps.stop.taking;
  while (!signal.aborted) {
    try {
      await run(config, deps, bell, sleep);
    } catch (error) {
      deps.events.generationsFailed(error);
      // Its folders are another's now.
      if (error instanceof ColonnadeError && error.code === 'conflict') return;
      await sleep(RETRY_MS, signal);
    }
  }
}

async function run(config: HookRunnerConfig, deps: GenerationDeps, bell: Bell, sleep: Sleep): Promise<void> {
  const { store, events } = deps;
  const signal = deps.stop.taking;
  await checkFolders(config, store, events, signal);
  const patience = createPatience();
  let lastId = store.history(1)[0]?.id ?? '';
  for (let pause: Pause | undefined; !signal.aborted; ) {
    await waitForWork(pause, deps, bell, sleep);
    await sleep(config.generationDebounceMs, signal);
    // Whoever rang until now has noted what for, and it is in the next line.
    bell.forget();
    const pending = store.pending();
    pause = undefined;
    if (signal.aborted || pending === undefined) continue;
    lastId = nextId(lastId);
    const failure = await generateOnce(pending, lastId, config, deps);
    if (failure === undefined) patience.forget();
    else {
      pause = patience.failed(failure.why, failure.initialMs);
      events.generationWaits(lastId, pause);
    }
  }
}

/**
 * Until something is to be done, a minion that failed among it; or after a generation that was stopped until it may be tried again: a while
 * later, or with the next change.
 */
async function waitForWork(
  pause: Pause | undefined,
  deps: GenerationDeps,
  bell: Bell,
  sleep: Sleep,
): Promise<void> {
  const beganMs = performance.now();
  if (pause === undefined && deps.store.pending() !== undefined) return;
  await bell.wait(pause?.atMostMs ?? Math.min(deps.store.dueInMs() ?? LOOK_EVERY_MS, LOOK_EVERY_MS));
  const leftMs = (pause?.atLeastMs ?? 0) - (performance.now() - beganMs);
  if (leftMs > 0) await sleep(leftMs, deps.stop.taking);
}

/** @returns why all of it is left to be done; undefined: nothing is, or only minions that failed, which wait for themselves */
async function generateOnce(
  pending: Pending,
  id: string,
  config: HookRunnerConfig,
  deps: GenerationDeps,
): Promise<{ why: string; initialMs: number } | undefined> {
  try {
    const { failed, reason } = await generate(pending, id, config, deps);
    return reason === undefined || failed.length > 0 ? undefined : { why: reason, initialMs: LOOK_EVERY_MS };
  } catch (error) {
    deps.events.generationBroken(id, error);
    return { why: String(error), initialMs: RETRY_MS };
  }
}

/** Its date is its name, so no two may have the same. */
function nextId(last: string): string {
  const now = new Date().toISOString();
  return now > last ? now : new Date(Date.parse(last) + 1).toISOString();
}

type Bell = { ring(): void; wait(ms: number): Promise<void>; forget(): void };

/** A ring that comes while nobody waits is not lost. */
function createBell(signal: AbortSignal, sleep: Sleep): Bell {
  let rung = new AbortController();
  return {
    ring: () => rung.abort(),
    async wait(ms) {
      const either = AbortSignal.any([signal, rung.signal]);
      if (!either.aborted) await sleep(ms, either);
      rung = new AbortController();
    },
    forget() {
      rung = new AbortController();
    },
  };
}
