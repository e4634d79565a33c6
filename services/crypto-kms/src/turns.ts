import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Takes a turn again and again, each so long after the one before; the pauses keep no process alive. Disposing waits for the turn
 * under way.
 * @param turn must not throw
 * @param firstAfterMs of the first one, milliseconds
 */
export function startTurns(everyMs: number, turn: () => Promise<void>, firstAfterMs = 0): AsyncDisposable {
  const stopped = new AbortController();
  const { signal } = stopped;
  const pause = (ms: number) => sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
  const loop = async (): Promise<void> => {
    if (firstAfterMs > 0) await pause(firstAfterMs);
    while (!signal.aborted) {
      await turn();
      await pause(everyMs);
    }
  };
  const running = loop();
  return {
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await running;
    },
  };
}
