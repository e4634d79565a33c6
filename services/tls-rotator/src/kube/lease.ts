import { setTimeout as sleep } from 'node:timers/promises';
import { type ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import { type KubeClient, MERGE_PATCH } from './client.ts';
import type { ObjectMeta } from './objects.ts';

export type Leadership = AsyncDisposable & {
  /** By our own clock, and false well before anyone else may take over. */
  isLeader(): boolean;
  /** Who has the Lease, as we saw it last. */
  holder(): string | undefined;
};

export type LeaseOptions = {
  namespace: string;
  name: string;
  /** Of this process; no other ever has the same. */
  identity: string;
  /** For so long nobody else takes over, milliseconds. */
  durationMs: number;
  onGained: () => void;
  onLost: () => void;
  onError: (error: ColonnadeError) => void;
};

type Lease = {
  metadata: ObjectMeta;
  spec?: {
    holderIdentity?: string | null;
    renewTime?: string;
    leaseDurationSeconds?: number;
    leaseTransitions?: number;
  };
};

/**
 * Leadership by a Lease of coordination.k8s.io. As in client-go the clocks of two machines are never compared: another
 * holder is taken for gone when its Lease has not changed for its duration, as we see it.
 */
export function startLease(client: KubeClient, options: LeaseOptions): Leadership {
  const base = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(options.namespace)}/leases`;
  const path = `${base}/${encodeURIComponent(options.name)}`;
  const stopped = new AbortController();
  let seen = { version: '', atMs: 0 };
  let leaderUntilMs = 0;
  let wasLeader = false;
  let holder: string | undefined;

  const spec = (lease?: Lease) => ({
    holderIdentity: options.identity,
    leaseDurationSeconds: Math.ceil(options.durationMs / 1000),
    renewTime: new Date().toISOString().replace('Z', '000Z'),
    leaseTransitions:
      (lease?.spec?.leaseTransitions ?? 0) + (lease?.spec?.holderIdentity === options.identity ? 0 : 1),
  });
  const mayTake = (lease: Lease): boolean => {
    const { holderIdentity, leaseDurationSeconds = 15 } = lease.spec ?? {};
    if (!holderIdentity || holderIdentity === options.identity) return true;
    const version = lease.metadata.resourceVersion;
    if (version !== seen.version) seen = { version, atMs: performance.now() };
    return performance.now() - seen.atMs > leaseDurationSeconds * 1000;
  };
  const tryOnce = async () => {
    const startMs = performance.now();
    const timeoutMs = options.durationMs / 3;
    const lease = await client.request<Lease>('GET', path, { timeoutMs }).catch((thrown) => {
      if (toColonnadeError(thrown).code === 'not_found') return undefined;
      throw thrown;
    });
    if (lease === undefined) {
      const metadata = { name: options.name, namespace: options.namespace };
      await client.request('POST', base, { body: { metadata, spec: spec() }, timeoutMs });
    } else if (mayTake(lease)) {
      const metadata = { resourceVersion: lease.metadata.resourceVersion };
      await client.request('PATCH', path, {
        body: { metadata, spec: spec(lease) },
        type: MERGE_PATCH,
        timeoutMs,
      });
    } else {
      holder = lease.spec?.holderIdentity ?? undefined;
      return;
    }
    holder = options.identity;
    // Answers that were slow let it lapse, and somebody has asked meanwhile whether we lead: that has to be told.
    note();
    // A fifth is left to those whose clock runs faster.
    leaderUntilMs = startMs + options.durationMs * 0.8;
  };
  const note = () => {
    const is = performance.now() < leaderUntilMs;
    if (is === wasLeader) return;
    wasLeader = is;
    (is ? options.onGained : options.onLost)();
  };
  const loop = (async () => {
    while (!stopped.signal.aborted) {
      await tryOnce().catch((thrown) => {
        const error = toColonnadeError(thrown);
        if (error.code !== 'conflict') options.onError(error);
      });
      note();
      await sleep(options.durationMs / 4, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  })();
  return {
    isLeader: () => performance.now() < leaderUntilMs,
    holder: () => holder,
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await loop;
      if (performance.now() >= leaderUntilMs) return;
      leaderUntilMs = 0;
      // Given back, so that the next one need not wait.
      await client
        .request('PATCH', path, {
          body: { spec: { holderIdentity: null } },
          type: MERGE_PATCH,
          timeoutMs: 2000,
        })
        .catch(() => undefined);
    },
  };
}
