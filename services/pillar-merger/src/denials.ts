import { type Auditor, mergeRef } from '@colonnade/audit';
import type { Denial } from './bridge/handle-entry.ts';

/** Puts refusals on record, so many per master that nothing is missed and the stream cannot be flooded. */
export type Denials = AsyncDisposable & {
  /** Resolves when the record is stored, or counted for a later one. @throws ColonnadeError `bus_unavailable` */
  record(denial: Denial): Promise<void>;
};

export type DenialsOptions = {
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
type Budget = { tokens: number; atMs: number; missed: Missed; last: Denial };

const NONE: Missed = { count: 0, what: new Set() };
/** Distinct pairs of minion and pillarenv told on a later record, and characters of each. */
const MAX_TOLD = 32;
const MAX_TOLD_CHARS = 256;

/** Masters come from the estate, so this is a bound for what cannot happen. */
const MAX_MASTERS = 10_000;

export function createDenials(options: DenialsOptions): Denials {
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
    async record(denial) {
      const budget = refill(budgets.get(denial.master), denial, burst, perSecond);
      if (budgets.size >= MAX_MASTERS) budgets.clear();
      budgets.set(denial.master, budget);
      if (budget.tokens < 1) {
        budget.missed = sum(budget.missed, { count: 1, what: new Set([tellOf(denial)]) });
        return;
      }
      budget.tokens -= 1;
      const { missed } = budget;
      budget.missed = NONE;
      try {
        await write(auditor, denial, missed);
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

function sum(a: Missed, b: Missed): Missed {
  return { count: a.count + b.count, what: new Set([...a.what, ...b.what].slice(0, MAX_TOLD)) };
}

/** Who asked for what, without the code: one line. A minion id and a pillarenv hold no control characters. */
function tellOf({ minionId, pillarenv }: Denial): string {
  return `${minionId ?? '-'} ${pillarenv ?? '-'}`.slice(0, MAX_TOLD_CHARS).toWellFormed();
}

async function write(auditor: Auditor, denial: Denial, missed: Missed): Promise<void> {
  await auditor.begin(requestOf(denial)).complete({
    code: STATUS[denial.code],
    reason: denial.code,
    annotations: annotationsOf(denial, missed),
  });
}

const STATUS = { unauthorized: 401, forbidden: 403, overloaded: 429 } as const;

function refill(known: Budget | undefined, last: Denial, burst: number, perSecond: number): Budget {
  const nowMs = performance.now();
  if (known === undefined) return { tokens: burst, atMs: nowMs, missed: NONE, last };
  known.tokens = Math.min(burst, known.tokens + ((nowMs - known.atMs) / 1000) * perSecond);
  known.atMs = nowMs;
  known.last = last;
  return known;
}

function requestOf({ master, minionId }: Denial) {
  return {
    verb: 'get',
    requestURI: `/bridge/${encodeURIComponent(master)}/${encodeURIComponent(minionId ?? '')}`,
    user: { username: `master:${master}`, groups: ['colonnade:masters'] },
    objectRef: mergeRef(master, minionId),
  };
}

/** The pillarenv is what somebody asked for, not a secret; it is the fact a reader of the record looks for. */
function annotationsOf({ reason, pillarenv }: Denial, missed: Missed): Record<string, string> {
  return {
    'colonnade/reason': reason,
    ...(pillarenv === undefined ? {} : { 'colonnade/pillarenv': pillarenv.slice(0, 1024).toWellFormed() }),
    ...(missed.count === 0
      ? {}
      : {
          'colonnade/not-recorded': String(missed.count),
          'colonnade/not-recorded-first': [...missed.what].join('\n'),
        }),
  };
}
