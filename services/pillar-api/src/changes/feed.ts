import { setTimeout as delay } from 'node:timers/promises';
import type { ChangeKey, Clock, EstateStore } from '@colonnade/estate-store';

/** What changed up to a clock; `all`: too much, or in another life of the estate, so that all is to be read anew. */
export type Change = { clock: Clock; changed: readonly ChangeKey[] | 'all' };

/** Tells listeners what changes in the estate, whichever process writes it. Asks the store only while somebody listens. */
export type Feed = AsyncDisposable & {
  /** Hears all that is written from now on. @throws ColonnadeError `unavailable` @returns what ends it */
  listen(hear: (change: Change) => void): Promise<() => void>;
  /** After a write of this process: nobody waits for the next look. */
  wake(): void;
};

/** What changed since a clock, in one moment of the store. */
export async function readChange(
  store: Pick<EstateStore, 'snapshot'>,
  since: Clock | undefined,
): Promise<Change> {
  const { clock, changed } = await store.snapshot({
    ...{ since, scopes: [], collections: false, masters: [], minions: [] },
  });
  return { clock, changed: since === undefined ? [] : changed };
}

/** @param options.failed told when the store did not answer; it is asked again at the next look */
export function createFeed(options: {
  store: Pick<EstateStore, 'snapshot'>;
  pollMs: number;
  failed: (error: unknown) => void;
}): Feed {
  const listeners = new Set<(change: Change) => void>();
  let at: Clock | undefined;
  let running: Promise<void> | undefined;
  let nap: AbortController | undefined;

  const look = async () => {
    try {
      const change = await readChange(options.store, at);
      const isNew = change.changed === 'all' || change.clock.tick > (at?.tick ?? 0);
      at = change.clock;
      if (isNew) for (const hear of listeners) hear(change);
    } catch (error) {
      options.failed(error);
    }
  };
  const run = async () => {
    while (listeners.size > 0) {
      await look();
      nap = new AbortController();
      await delay(options.pollMs, undefined, { signal: nap.signal, ref: false }).catch(() => {});
    }
    // Who listens next begins with what is then.
    at = undefined;
    running = undefined;
  };
  return {
    async listen(hear) {
      if (at === undefined) {
        const { clock } = await readChange(options.store, undefined);
        at ??= clock;
      }
      listeners.add(hear);
      running ??= run();
      return () => listeners.delete(hear);
    },
    wake: () => nap?.abort(),
    async [Symbol.asyncDispose]() {
      listeners.clear();
      nap?.abort();
      await running;
    },
  };
}
