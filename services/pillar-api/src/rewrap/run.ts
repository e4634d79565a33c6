import { setTimeout as delay } from 'node:timers/promises';
import { startCall } from '@colonnade/contracts';
import type { EstateStore, RewrapProgress } from '@colonnade/estate-store';
import type { Events } from '../events.ts';
import type { Kms } from '../kms.ts';
import type { HeldLease } from './lease.ts';
import { rewrapRows } from './step.ts';

/** Values of one step at most: a transaction of a few milliseconds. */
const STEP_ROWS = 100;
const KMS_BUDGET_MS = 10_000;
/** How often progress is written down. */
const NOTE_MS = 1000;

export type RunDeps = {
  store: Pick<EstateStore, 'listSealed' | 'swapSealed' | 'writeRewrap'>;
  kms: Pick<Kms, 'rewrap' | 'check'>;
  events: Pick<Events, 'rewrapped' | 'rewrapFaulty'>;
  lease: Pick<HeldLease, 'check'>;
  /** Values a second at most. */
  perSecond: number;
  /** Aborted when this process stops, or has lost the lease. */
  signal: AbortSignal;
};

/**
 * One walk over what stands under these keys. Whatever is rewrapped is found no more, so a walk that was cut short is simply
 * begun again.
 * @returns how far it came
 * @throws ColonnadeError `conflict` when another process took over | `kms_unavailable` | `unavailable`
 */
export async function rewrapAll(
  kids: readonly string[],
  progress: RewrapProgress,
  deps: RunDeps,
): Promise<RewrapProgress> {
  // No step is followed by a wait of more than a second.
  const limit = Math.max(1, Math.min(STEP_ROWS, deps.perSecond));
  let now = progress;
  let notedMs = performance.now();
  for (const kid of kids) {
    for (let after: string | undefined; !deps.signal.aborted; ) {
      const startedMs = performance.now();
      deps.lease.check();
      const page = await deps.store.listSealed(kid, { after, limit });
      const { swapped, failed } = await rewrapRows(page.rows, { ...deps, call: startCall(KMS_BUDGET_MS) });
      deps.events.rewrapped({ swapped, failed: failed.length });
      for (const one of failed) deps.events.rewrapFaulty({ ...one, kid });
      now = {
        ...now,
        rewrapped: now.rewrapped + swapped,
        failed: now.failed + failed.length,
        updatedAtMs: Date.now(),
      };
      if (performance.now() - notedMs > NOTE_MS) {
        await deps.store.writeRewrap(now);
        notedMs = performance.now();
      }
      after = page.next;
      if (after === undefined) break;
      const dueMs = (page.rows.length / deps.perSecond) * 1000 - (performance.now() - startedMs);
      if (dueMs > 0) await delay(dueMs, undefined, { signal: deps.signal }).catch(() => undefined);
    }
  }
  // What another process has come to meanwhile is not written over.
  deps.lease.check();
  await deps.store.writeRewrap(now);
  return now;
}
