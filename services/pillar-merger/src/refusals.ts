import type { Auditor } from '@colonnade/audit';
import { isDenial, type Refusal } from './bridge/handle-entry.ts';
import { MAX_PILLARENV_CHARS, mergeRequest, statusOf } from './merge-record.ts';

/** Puts refusals on record, so many per master that nothing is missed and the stream cannot be flooded. */
export type Refusals = AsyncDisposable & {
  /** Resolves when the record is stored, or counted for a later one. @throws ColonnadeError `bus_unavailable` */
  record(refusal: Refusal): Promise<void>;
};

export type RefusalsOptions = {
  auditor: Auditor;
  /** Records in a row, and how many come back per second. */
  burst?: number;
  perSecond?: number;
  /** How often counts that were not yet on record are written, milliseconds. */
  flushMs?: number;
  onFault: (thrown: unknown) => void;
};

/** Refusals that were only counted, and the first few that differ. */
type Missed = { count: number; what: ReadonlySet<string> };
type Budget = { tokens: number; atMs: number; missed: Missed; last: Refusal };

const NONE: Missed = { count: 0, what: new Set() };
/** Distinct pairs of minion and pillarenv told on a later record, and characters of each. */
const MAX_TOLD = 32;
const MAX_TOLD_CHARS = 256;

/** Masters come from the estate, so this is a bound for what cannot happen. */
const MAX_BUDGETS = 20_000;

export function createRefusals(options: RefusalsOptions): Refusals {
  const { auditor, burst = 20, perSecond = 1, flushMs = 10_000, onFault } = options;
  const budgets = new Map<string, Budget>();

  /** What was only counted goes on record with the next refusal, or now. */
  const flush = async (): Promise<void> => {
    for (const budget of budgets.values()) {
      const { missed, last } = budget;
      if (missed.count === 0) continue;
      budget.missed = NONE;
      await write(auditor, last, missed).catch((thrown) => {
        budget.missed = sum(missed, budget.missed);
        onFault(thrown);
      });
    }
  };
  const timer = setInterval(() => void flush(), flushMs);
  timer.unref();

  return {
    async record(refusal) {
      const key = budgetKey(refusal);
      const budget = refill(budgets.get(key), refusal, burst, perSecond);
      if (budgets.size >= MAX_BUDGETS) budgets.clear();
      budgets.set(key, budget);
      if (budget.tokens < 1) {
        budget.missed = sum(budget.missed, { count: 1, what: new Set([tellOf(refusal)]) });
        return;
      }
      budget.tokens -= 1;
      const { missed } = budget;
      budget.missed = NONE;
      try {
        await write(auditor, refusal, missed);
      } catch (thrown) {
        budget.missed = sum(missed, budget.missed);
        throw thrown;
      }
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await flush();
    },
  };
}

/** An outage that fails every merge of a master takes no room from what the master did wrong. */
function budgetKey({ master, code }: Refusal): string {
  return isDenial(code) ? `denied ${master}` : `failed ${master}`;
}

function sum(a: Missed, b: Missed): Missed {
  return { count: a.count + b.count, what: new Set([...a.what, ...b.what].slice(0, MAX_TOLD)) };
}

/** Who asked for what, without the code: one line. A minion id and a pillarenv hold no control characters. */
function tellOf({ minionId, pillarenv }: Refusal): string {
  return `${minionId ?? '-'} ${pillarenv ?? '-'}`.slice(0, MAX_TOLD_CHARS).toWellFormed();
}

async function write(auditor: Auditor, refusal: Refusal, missed: Missed): Promise<void> {
  await auditor.begin(mergeRequest(refusal)).complete({
    code: statusOf(refusal.code),
    reason: refusal.code,
    annotations: annotationsOf(refusal, missed),
  });
}

function refill(known: Budget | undefined, last: Refusal, burst: number, perSecond: number): Budget {
  const nowMs = performance.now();
  if (known === undefined) return { tokens: burst, atMs: nowMs, missed: NONE, last };
  known.tokens = Math.min(burst, known.tokens + ((nowMs - known.atMs) / 1000) * perSecond);
  known.atMs = nowMs;
  known.last = last;
  return known;
}

/** The pillarenv is what somebody asked for, not a secret; it is the fact a reader of the record looks for. */
function annotationsOf({ reason, pillarenv }: Refusal, missed: Missed): Record<string, string> {
  return {
    'colonnade/reason': reason,
    ...(pillarenv === undefined
      ? {}
      : { 'colonnade/pillarenv': pillarenv.slice(0, MAX_PILLARENV_CHARS).toWellFormed() }),
    ...(missed.count === 0
      ? {}
      : {
          'colonnade/not-recorded': String(missed.count),
          'colonnade/not-recorded-first': [...missed.what].join('\n'),
        }),
  };
}
