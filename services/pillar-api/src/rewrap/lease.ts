import { ColonnadeError } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';

/** The right to do something on a store that one process at a time does. Disposing gives it up. */
export type HeldLease = AsyncDisposable & {
  /** Aborted once another process may have it. */
  lost: AbortSignal;
  /** @throws ColonnadeError `conflict` once another process may have it */
  check(): void;
};

/**
 * Takes a lease and renews it by time, whatever the work under it takes or waits for: a lease that is renewed as the work goes on dies when that is slow.
 * @param ttlMs how long one that was killed keeps the others waiting
 * @throws ColonnadeError `conflict` while another process has it | `unavailable`
 */
export async function holdLease(
  store: Pick<EstateStore, 'acquireLease' | 'releaseLease'>,
  { name, holder, ttlMs }: { name: string; holder: string; ttlMs: number },
): Promise<HeldLease> {
  const lost = new AbortController();
  let heldUntilMs = 0;
  const renew = async (): Promise<void> => {
    // Counted from before it was asked for, by this process's own clock.
    const untilMs = performance.now() + ttlMs;
    if ((await store.acquireLease(name, holder, ttlMs)) === undefined) lost.abort();
    else heldUntilMs = untilMs;
  };
  let renewing = renew();
  await renewing;
  const timer = setInterval(() => {
    // A store that is away for a moment is asked again, as long as the lease lives.
    renewing = renew().catch(() => {
      if (performance.now() > heldUntilMs) lost.abort();
    });
  }, ttlMs / 4).unref();
  const lease: HeldLease = {
    lost: lost.signal,
    check() {
      if (performance.now() > heldUntilMs) lost.abort();
      if (lost.signal.aborted)
        throw new ColonnadeError('conflict', `another process has taken over the lease ${name}`);
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await renewing;
      await store.releaseLease(name, holder).catch(() => undefined);
    },
  };
  if (!lost.signal.aborted) return lease;
  clearInterval(timer);
  return lease.check() as never;
}
