import { setTimeout as delay } from 'node:timers/promises';
import { ColonnadeError, startCall } from '@colonnade/contracts';
import type { EstateStore, RewrapProgress } from '@colonnade/estate-store';
import type { Events } from '../events.ts';
import type { Kms } from '../kms.ts';
import { rewrapRows } from './step.ts';

export const REWRAP_LEASE = 'key-rewrap';
const LEASE_MS = 10_000;
/** Values of one step: a transaction of a few milliseconds. */
const STEP_ROWS = 100;
const KMS_BUDGET_MS = 10_000;
/** How often progress is written down. */
const NOTE_MS = 1000;

export type RunDeps = {
  store: Pick<EstateStore, 'listSealed' | 'swapSealed' | 'writeRewrap' | 'acquireLease'>;
  kms: Pick<Kms, 'rewrap' | 'check'>;
  events: Pick<Events, 'rewrapped' | 'rewrapFaulty'>;
  holder: string;
  /** Values a second at most. */
  perSecond: number;
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
  let now = progress;
  let notedMs = performance.now();
  for (const kid of kids) {
    for (let after: string | undefined; !deps.signal.aborted; ) {
      const startedMs = performance.now();
      await holdLease(deps);
      const page = await deps.store.listSealed(kid, { after, limit: STEP_ROWS });
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
  await deps.store.writeRewrap(now);
  return now;
}

export async function holdLease({
  store,
  holder,
}: Pick<RunDeps, 'holder'> & { store: Pick<EstateStore, 'acquireLease'> }) {
  const lease = await store.acquireLease(REWRAP_LEASE, holder, LEASE_MS);
  if (lease === undefined) throw new ColonnadeError('conflict', 'another process rewraps just now');
}
