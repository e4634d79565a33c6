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

type Budget = { tokens: number; atMs: number; suppressed: number; last: Denial };

/** Masters come from the estate, so this is a bound for what cannot happen. */
const MAX_MASTERS = 10_000;

export function createDenials(options: DenialsOptions): Denials {
  const { auditor, burst = 20, perSecond = 1, flushMs = 10_000, onFault } = options;
  const budgets = new Map<string, Budget>();

  /** What was only counted goes on record with the next refusal, or now. */
  const flush = async (): Promise<void> => {
    for (const budget of budgets.values()) {
      const { suppressed, last } = budget;
      if (suppressed === 0) continue;
      budget.suppressed = 0;
      await write(auditor, last, suppressed).catch((thrown) => {
        budget.suppressed += suppressed;
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
        budget.suppressed += 1;
        return;
      }
      budget.tokens -= 1;
      const { suppressed } = budget;
      budget.suppressed = 0;
      try {
        await write(auditor, denial, suppressed);
      } catch (thrown) {
        budget.suppressed += suppressed;
        throw thrown;
      }
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await flush();
    },
  };
}

async function write(auditor: Auditor, denial: Denial, suppressed: number): Promise<void> {
  await auditor.begin(requestOf(denial)).complete({
    code: denial.code === 'unauthorized' ? 401 : 403,
    reason: denial.code,
    annotations: annotationsOf(denial, suppressed),
  });
}

function refill(known: Budget | undefined, last: Denial, burst: number, perSecond: number): Budget {
  const nowMs = performance.now();
  if (known === undefined) return { tokens: burst, atMs: nowMs, suppressed: 0, last };
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
function annotationsOf({ reason, pillarenv }: Denial, suppressed: number): Record<string, string> {
  return {
    'colonnade.io/reason': reason,
    ...(pillarenv === undefined ? {} : { 'colonnade.io/pillarenv': pillarenv.slice(0, 1024).toWellFormed() }),
    ...(suppressed === 0 ? {} : { 'colonnade.io/not-recorded': String(suppressed) }),
  };
}
