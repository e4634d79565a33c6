import { startCall } from '@colonnade/contracts';
import type { EstateCache } from './estate-cache.ts';

const EVERY_MS = 500;

/** Reads the estate's clock twice a second, so that the stream of a new master is read even while nobody asks. */
export function startMasterWatch() {
  let dirty = false;
  return {
    /** Masters are others than before, or may be. */
    changed: () => {
      dirty = true;
    },
    start(
      estate: Pick<EstateCache, 'refresh'>,
      bridge: { refreshMasters(): Promise<void> },
      everyMs = EVERY_MS,
    ): AsyncDisposable {
      let running: Promise<void> | undefined;
      const look = async (): Promise<void> => {
        await estate.refresh(startCall(everyMs * 2));
        if (!dirty) return;
        dirty = false;
        await bridge.refreshMasters().catch((thrown) => {
          dirty = true;
          throw thrown;
        });
      };
      // A store or a Redis that is away shows in the readiness; the next look tries again.
      const timer = setInterval(() => {
        running ??= look()
          .catch(() => {})
          .finally(() => {
            running = undefined;
          });
      }, everyMs);
      return {
        async [Symbol.asyncDispose]() {
          clearInterval(timer);
          await running;
        },
      };
    },
  };
}
