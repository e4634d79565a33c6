import type { Auditor } from '@colonnade/audit';
import { type Call, ColonnadeError, startCall, toColonnadeError } from '@colonnade/contracts';
import type { EstateStore, RewrapProgress } from '@colonnade/estate-store';
import type { Events } from '../events.ts';
import type { Kms } from '../kms.ts';
import { type HeldLease, holdLease } from './lease.ts';
import {
  activeKid,
  barredKids,
  countLeft,
  findKey,
  isDue,
  type Key,
  kidsToLeave,
  sealsValues,
} from './plan.ts';
import { rewrapAll } from './run.ts';

export type RewrapSettings = {
  /** Values rewrapped in a second at most. */
  perSecond: number;
  /** How often it is looked whether something is to be rewrapped, milliseconds; 0: only when asked. */
  runMs: number;
};

export type RewrapStatus = { key: Key; kid: string; left: number; run: RewrapProgress | undefined };

/** Brings stored values under the key that seals. Of all processes on a store, one at a time does. */
export type Rewrap = AsyncDisposable & {
  /** Live. @throws ColonnadeError `not_found`, `kms_unavailable`, `unavailable` */
  status(name: string, call: Call): Promise<RewrapStatus>;
  /** Asks for a run and does not wait for it; one under way stays as it is. @throws as status */
  start(name: string, by: string, call: Call): Promise<RewrapStatus>;
};

/** How often it is looked whether a process that was killed left a run behind, or another one was asked for one. */
const POLL_MS = 2000;
const BUDGET_MS = 10_000;
/** How long one that was killed keeps the others from going on. */
const LEASE_MS = 10_000;

type Deps = {
  store: Pick<
    EstateStore,
    | 'countKeyUse'
    | 'listSealed'
    | 'swapSealed'
    | 'readRewrap'
    | 'writeRewrap'
    | 'readClosedKids'
    | 'closeKids'
    | 'acquireLease'
    | 'releaseLease'
  >;
  kms: Pick<Kms, 'rewrap' | 'check' | 'listKeys'>;
  auditor: Auditor;
  events: Pick<
    Events,
    'rewrapped' | 'rewrapFaulty' | 'rewrapEnded' | 'rewrapFailed' | 'rewrapLeft' | 'keysReopened'
  >;
  /** Unique among all processes on this store. */
  holder: string;
};

export function startRewrap(settings: RewrapSettings, deps: Deps): Rewrap {
  const { store } = deps;
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;

  const turn = async (): Promise<void> => {
    const run = await store.readRewrap();
    const isAsked = run !== undefined && run.finishedAtMs === undefined;
    const isTime = settings.runMs > 0 && performance.now() - lookedMs >= settings.runMs;
    if (!isAsked && !isTime) return;
    lookedMs = performance.now();
    const key = (await deps.kms.listKeys(startCall(BUDGET_MS))).find(sealsValues);
    if (key === undefined) return;
    await using lease = await holdLease(store, { name: 'key-rewrap', holder: deps.holder, ttlMs: LEASE_MS });
    await closeBarred(key, deps);
    const signal = AbortSignal.any([stopping.signal, lease.lost]);
    await runDue(key, run, { ...settings, ...deps, lease, signal });
  };
  const wake = (): void => {
    running ??= turn()
      .catch((thrown) => {
        const error = toColonnadeError(thrown);
        if (error.code !== 'conflict') deps.events.rewrapFailed({ error });
      })
      .finally(() => {
        running = undefined;
      });
  };
  const timer = setInterval(wake, POLL_MS).unref();

  const status = async (name: string, call: Call): Promise<RewrapStatus> => {
    const key = findKey(await deps.kms.listKeys(call), name);
    if (!sealsValues(key))
      throw new ColonnadeError('not_found', `the key ${name} signs: nothing is stored under it`);
    const left = countLeft(key, await store.countKeyUse());
    return { key, kid: activeKid(key) ?? '', left, run: await store.readRewrap() };
  };
  return {
    status,
    async start(name, by, call) {
      const now = await status(name, call);
      if (now.run !== undefined && now.run.finishedAtMs === undefined) return now;
      const run = newRun(now.key, by, now.left);
      await store.writeRewrap(run);
      wake();
      return { ...now, run };
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

/** A store that was restored does not know what was barred after its backup. */
async function closeBarred(key: Key, { store, events }: Pick<Deps, 'store' | 'events'>): Promise<void> {
  const barred = barredKids(key);
  const closed = await store.readClosedKids();
  if (barred.every((kid) => closed.includes(kid))) return;
  try {
    await store.closeKids(barred);
  } catch (thrown) {
    const error = toColonnadeError(thrown);
    if (error.code !== 'conflict') throw error;
    events.keysReopened({ error });
  }
}

type RunDeps = Deps & RewrapSettings & { lease: HeldLease; signal: AbortSignal };

async function runDue(key: Key, last: RewrapProgress | undefined, deps: RunDeps): Promise<void> {
  const { store, signal } = deps;
  const use = await store.countKeyUse();
  const left = countLeft(key, use);
  deps.events.rewrapLeft({ left });
  const kid = activeKid(key) ?? '';
  const isUnfinished = last !== undefined && last.finishedAtMs === undefined;
  if (!isUnfinished && !isDue(last, kid, left)) return;
  const begun = isUnfinished ? last : newRun(key, 'pillar-api', left);
  await store.writeRewrap(begun);
  const span = deps.auditor.begin(describe(begun));
  // Written while it was walked over: a second walk finds it.
  let run = begun;
  for (let before = -1; run.rewrapped > before && !signal.aborted; ) {
    before = run.rewrapped;
    run = await rewrapAll(kidsToLeave(key, await store.countKeyUse()), { ...run, failed: 0 }, deps);
  }
  if (signal.aborted) return;
  const leftNow = countLeft(key, await store.countKeyUse());
  const ended = { ...run, left: leftNow, updatedAtMs: Date.now(), finishedAtMs: Date.now() };
  await store.writeRewrap(ended);
  deps.events.rewrapLeft({ left: leftNow });
  deps.events.rewrapEnded(ended);
  const annotations = {
    'colonnade/rewrapped': String(ended.rewrapped),
    'colonnade/failed': String(ended.failed),
    'colonnade/kid': ended.kid,
  };
  await span.complete({ code: 200, annotations });
}

function newRun(key: Key, by: string, left: number): RewrapProgress {
  const nowMs = Date.now();
  return {
    ...{ key: key.name, kid: activeKid(key) ?? '', by, startedAtMs: nowMs, updatedAtMs: nowMs },
    ...{ finishedAtMs: undefined, rewrapped: 0, failed: 0, left },
  };
}

/** A run is on record when it ends, whoever asked for it. */
function describe({ key, by }: RewrapProgress): Parameters<Auditor['begin']>[0] {
  return {
    verb: 'rewrap',
    requestURI: `/keys/${key}/rewrap`,
    user: { username: by, groups: ['pillar-api'] },
    objectRef: { resource: 'keys', name: key, subresource: 'rewrap' },
  };
}
