import { setTimeout as sleep } from 'node:timers/promises';
import type { Events } from '../events.ts';
import type { Hole } from './plan.ts';

const NAME = 'file';
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 2000;

export type Persister = ReturnType<typeof createPersister>;

/**
 * Lets one thing at a time happen to the files, and waits for a full disk instead of giving the batch back.
 * @param requireLock throws when another may write; asked before anything is done to the files
 */
export function createPersister(events: Events, requireLock: () => void) {
  let turn: Promise<unknown> = Promise.resolve();
  let fault: string | undefined;
  let refused: string | undefined;
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(() => {
      requireLock();
      return work();
    });
    turn = result.catch(() => {});
    return result;
  };
  return {
    inTurn,
    idle: () => turn,
    /** Tries until it is done: the messages stay held meanwhile, so their order is kept. @throws at the signal, and without the lock */
    async persist(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
      for (let delay = RETRY_MIN_MS; ; delay = Math.min(2 * delay, RETRY_MAX_MS)) {
        try {
          await inTurn(work);
          if (fault !== undefined) events.backendWorks(NAME);
          fault = undefined;
          return;
        } catch (thrown) {
          // Waiting brings no lock back.
          requireLock();
          if (fault === undefined) events.backendFailing(NAME, thrown);
          fault = `the log cannot be written: ${(thrown as NodeJS.ErrnoException).code ?? 'unknown'}`;
          await sleep(delay, undefined, { signal }).catch(() => {});
          if (signal.aborted) throw thrown;
        }
      }
    },
    /** Nothing more is written until the hole is accepted; undefined: there is none. */
    refuse(hole: Hole | undefined) {
      const why = hole && `records ${hole.from} to ${hole.to} are gone from the stream`;
      if (hole !== undefined && why !== refused) {
        events.gapRefused({ backend: NAME, from: hole.from, to: hole.to });
      }
      if (hole === undefined && refused !== undefined) events.backendWorks(NAME);
      refused = why;
    },
    check() {
      const why = fault ?? refused;
      if (why !== undefined) throw new Error(why);
    },
  };
}
