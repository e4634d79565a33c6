import type { EstateStore } from '@colonnade/estate-store';
import type { Events } from '../events.ts';

/** An import to which nothing was added for so long has no process any more. Milliseconds. */
const IDLE_MS = 10 * 60_000;
const EVERY_MS = 60_000;

/** Forgets what imports left staged whose process ended. */
export function startSweeping(
  store: Pick<EstateStore, 'sweepImports'>,
  events: Pick<Events, 'importsSwept'>,
): Disposable {
  const sweep = async () => {
    try {
      const swept = await store.sweepImports(IDLE_MS);
      if (swept > 0) events.importsSwept({ swept });
    } catch {
      // A store that is away is told of elsewhere; the next round tries again.
    }
  };
  void sweep();
  const timer = setInterval(sweep, EVERY_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
