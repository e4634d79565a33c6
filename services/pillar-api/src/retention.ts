import { setTimeout as delay } from 'node:timers/promises';
import type { Auditor } from '@colonnade/audit';
import { ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import type { EstateStore, Retention } from '@colonnade/estate-store';
import type { Events } from './events.ts';

export type RetentionSettings = {
  /** Newest versions kept of each pillar; undefined: all. */
  keepVersions: number | undefined;
  /** Days a version is kept after it was replaced, or its pillar deleted; undefined: for ever. */
  keepDays: number | undefined;
  /** Between two runs, milliseconds; 0: only when asked. */
  runMs: number;
};

export type RetentionRun = { removed: number; finished: boolean };

/** Removes what the settings do not keep. Of all processes on a store, one at a time does. */
export type HistoryRetention = AsyncDisposable & {
  settings: RetentionSettings;
  /**
   * One run, for at most `budgetMs`; the next one goes on where it ended.
   * @throws ColonnadeError `conflict` while another process is at it | `unavailable`
   */
  run(budgetMs: number, by: string): Promise<RetentionRun>;
};

const RETENTION_LEASE = 'history-retention';
const LEASE_MS = 30_000;
/** How long a run by the clock lasts at most. */
const RUN_BUDGET_MS = 10 * 60_000;
/** Between two batches: other writes go first. */
const PAUSE_MS = 20;
const DAY_MS = 86_400_000;

type Deps = {
  store: Pick<EstateStore, 'trimHistory' | 'acquireLease' | 'releaseLease'>;
  auditor: Auditor;
  events: Pick<Events, 'historyTrimmed' | 'historyTrimFailed'>;
  /** Unique among all processes on this store. */
  holder: string;
};

export function startRetention(settings: RetentionSettings, deps: Deps): HistoryRetention {
  const stopping = new AbortController();
  const { signal } = stopping;
  let after: string | undefined;
  let running: Promise<RetentionRun> | undefined;

  const trim = async (budgetMs: number): Promise<RetentionRun> => {
    const deadline = performance.now() + budgetMs;
    let removed = 0;
    while (!signal.aborted) {
      const lease = await deps.store.acquireLease(RETENTION_LEASE, deps.holder, LEASE_MS);
      if (lease === undefined)
        throw new ColonnadeError('conflict', 'another process removes old versions just now');
      const batch = await deps.store.trimHistory(retentionOf(settings), { after });
      removed += batch.removed;
      after = batch.next;
      if (after === undefined) return { removed, finished: true };
      if (performance.now() + PAUSE_MS > deadline) break;
      await delay(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
    return { removed, finished: false };
  };
  const runOnce = async (budgetMs: number, by: string): Promise<RetentionRun> => {
    const span = deps.auditor.begin(describe(by));
    try {
      const done = await trim(budgetMs);
      deps.events.historyTrimmed(done);
      const annotations = { 'colonnade/removed': String(done.removed) };
      if (done.removed > 0) await span.complete({ code: 200, annotations });
      return done;
    } finally {
      await deps.store.releaseLease(RETENTION_LEASE, deps.holder).catch(() => undefined);
    }
  };
  const run: HistoryRetention['run'] = async (budgetMs, by) => {
    if (running !== undefined)
      throw new ColonnadeError('conflict', 'old versions are being removed just now');
    running = runOnce(budgetMs, by);
    try {
      return await running;
    } finally {
      running = undefined;
    }
  };
  const isOn = settings.runMs > 0 && (settings.keepVersions !== undefined || settings.keepDays !== undefined);
  const timer = isOn ? setInterval(tick, settings.runMs) : undefined;
  timer?.unref();
  function tick(): void {
    run(RUN_BUDGET_MS, 'pillar-api').catch((thrown) => {
      const error = toColonnadeError(thrown);
      if (error.code !== 'conflict') deps.events.historyTrimFailed({ error });
    });
  }
  return {
    settings,
    run,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      stopping.abort();
      await running?.catch(() => undefined);
    },
  };
}

function retentionOf({ keepVersions: keep, keepDays }: RetentionSettings): Retention {
  return { keep, beforeMs: keepDays === undefined ? undefined : Date.now() - keepDays * DAY_MS };
}

/** Old versions are removed on record, whoever asked. */
function describe(by: string): Parameters<Auditor['begin']>[0] {
  return {
    verb: 'deletecollection',
    requestURI: '/history/retention',
    user: { username: by, groups: ['pillar-api'] },
    objectRef: { resource: 'versions' },
  };
}
