import { setTimeout as sleep } from 'node:timers/promises';
import type { Bus } from '@colonnade/bus';
import { toColonnadeError } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import type { Backend } from './backend.ts';

/** Several backends that run at once, each at its own pace. */
export type Union = AsyncDisposable & {
  names: readonly string[];
  /** @throws Error with what keeps that backend from taking events */
  check(name: string): void;
};

const START_RETRY_MS = 1000;
/** The try after which one that cannot start is said to take nothing. */
const SURE_AT = 3;

/**
 * Starts every backend on its own consumer. One that cannot start is tried again, and keeps no other from working.
 * Disposing stops taking messages, finishes what is under way and shuts the backends down.
 */
export function startBackends(backends: readonly Backend[], bus: Bus, events: Events): Union {
  const stop = new AbortController();
  const working = backends.map((backend) => drive(backend, bus, events, stop.signal));
  return {
    names: backends.map(({ name }) => name),
    check: (name) => backends.find((b) => b.name === name)?.check(),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.allSettled(working);
    },
  };
}

async function drive(backend: Backend, bus: Bus, events: Events, signal: AbortSignal): Promise<void> {
  try {
    while (!signal.aborted) {
      await start(backend, events, signal);
      if (!signal.aborted) await takeTurn(backend, bus, events, signal);
    }
  } finally {
    await backend.shutdown();
  }
}

/** Gives it what comes, until it is stopped or may take no more. */
async function takeTurn(backend: Backend, bus: Bus, events: Events, signal: AbortSignal): Promise<void> {
  const { name, turn } = backend;
  await bus.consume(
    backend.consumer,
    {
      pull: () => backend.batch(),
      confirm: true,
      handle: (deliveries, stopping) => backend.process(deliveries, stopping),
      onFailure: (error, attempt) => events.batchFailed(name, error, attempt),
    },
    turn === undefined ? signal : AbortSignal.any([signal, turn()]),
  );
}

async function start(backend: Backend, events: Events, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; !signal.aborted; attempt += 1) {
    try {
      await backend.run(signal);
      if (attempt > SURE_AT && !signal.aborted) events.backendWorks(backend.name);
      return;
    } catch (thrown) {
      events.batchFailed(backend.name, toColonnadeError(thrown), attempt);
      if (attempt === SURE_AT) events.backendFailing(backend.name, thrown);
      await sleep(START_RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }
}
