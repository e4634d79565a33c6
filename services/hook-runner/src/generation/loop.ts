import { setTimeout as wait } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';
import type { HookRunnerConfig } from '../config.ts';
import { type GenerationRecord, nameOf, type Pending } from '../store/generation-store.ts';
import { checkFolders } from './check-folders.ts';
import { type GenerationDeps, generate } from './generate.ts';
import { createPatience, type Pause, whyFailed } from './patience.ts';

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

/** Until something is to be done, or after a failure until it may be tried again: a while later, or with the next change. */
async function waitForWork(
  pause: Pause | undefined,
  deps: GenerationDeps,
  bell: Bell,
  sleep: Sleep,
): Promise<void> {
  const beganMs = performance.now();
  if (pause === undefined && deps.store.pending() !== undefined) return;
  await bell.wait(pause?.atMostMs ?? LOOK_EVERY_MS);
  const leftMs = (pause?.atLeastMs ?? 0) - (performance.now() - beganMs);
  if (leftMs > 0) await sleep(leftMs, deps.stop.taking);
}

/** @returns why something is left to be done; undefined: nothing is, or only what came meanwhile */
async function generateOnce(
  pending: Pending,
  id: string,
  config: HookRunnerConfig,
  deps: GenerationDeps,
): Promise<{ why: string; initialMs: number } | undefined> {
  const { store, events } = deps;
  try {
    const record = await generate(pending, id, config, deps);
    const left = store.pending();
    if (record.status === 'finished' || left === undefined || !isAgain(record, left)) return undefined;
    return { why: whyFailed(record), initialMs: left.upTo === pending.upTo ? LOOK_EVERY_MS : RETRY_MS };
  } catch (error) {
    events.generationBroken(id, error);
    return { why: String(error), initialMs: RETRY_MS };
  }
}

/** What a hook has stopped stays to be done, and so do minions that no merger could compile; other failures last. */
function isAgain({ failed }: GenerationRecord, { touched }: Pending): boolean {
  const names = new Set(failed.map(({ minion }) => minion));
  return names.size === 0 || touched.some((one) => one.kind === 'minion' && names.has(nameOf(one)));
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
