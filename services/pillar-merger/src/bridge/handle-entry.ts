import {
  type BridgeErrorCode,
  type BridgeRequest,
  type Call,
  ColonnadeError,
  startCall,
  toColonnadeError,
} from '@colonnade/contracts';
import type { MergeAnswer, MergeRequest } from '../answer-merge.ts';
import { within } from '../within.ts';
import { type Entry, startOf } from './entry.ts';
import type { StoredReply } from './functions.ts';
import { parseRequest, ttlOf } from './parse-request.ts';
import { errorText, successText, toBridgeError } from './reply.ts';

/** How one entry ended. `lost`: the reply was not stored, and another merger or nobody will answer. */
export type EntryOutcome = {
  entry: Entry;
  code: 'ok' | BridgeErrorCode | 'late' | 'lost';
  durationMs: number;
  /** What went wrong, for the log. */
  error: ColonnadeError | undefined;
};

/** A merge that gave nothing. */
export type Refusal = {
  code: BridgeErrorCode;
  reason: string;
  master: string;
  minionId: string | undefined;
  pillarenv: string | undefined;
};

export type HandleDeps = {
  answer: (request: MergeRequest, call: Call) => Promise<MergeAnswer>;
  /** Throws when the record is not stored. */
  recordRefusal: (refusal: Refusal) => Promise<void>;
  /** False when it came too late; throws when Redis does not take it. */
  storeReply: (reply: StoredReply) => Promise<boolean>;
  /** Redis's clock. */
  nowMs: () => number;
  onOutcome: (outcome: EntryOutcome) => void;
};

/** A request is delivered to so many mergers; the one that gets it once more answers `internal` (poison). */
export const MAX_DELIVERIES = 2;
/** Kept back from a request's time, so that an error about lateness is not itself late. */
const ERROR_MARGIN_MS = 50;
/** What waits for a neighbour gives up a little earlier, so that its own error comes first. */
const GUARD_MS = 20;
const KEEP_SLACK_MS = 250;

/** Answers one entry: always exactly one attempt to store one reply, whatever happens. Never throws. */
export async function handleEntry(entry: Entry, deps: HandleDeps): Promise<void> {
  const startedMs = performance.now();
  const end = (code: EntryOutcome['code'], error?: ColonnadeError): void =>
    deps.onOutcome({ entry, code, durationMs: performance.now() - startedMs, error });
  let request: BridgeRequest | undefined;
  const attempt = async (): Promise<string> => {
    if (entry.deliveries > MAX_DELIVERIES) {
      throw new ColonnadeError('internal', 'the request was given up after it was delivered twice');
    }
    request = parseRequest(entry);
    return successText(entry.id, await answerInTime(entry, request, deps));
  };
  let failure: ColonnadeError | undefined;
  try {
    const text = await attempt().catch(async (thrown) => {
      failure = await onRecord(toColonnadeError(thrown), entry, request, deps);
      return errorText(entry.id, failure);
    });
    const stored = await deps.storeReply({ ...timesOf(entry, request, deps), text });
    if (stored) end(failure === undefined ? 'ok' : toBridgeError(failure).code, failure);
    else end('late', failure);
  } catch (thrown) {
    end('lost', toColonnadeError(thrown));
  }
}

async function answerInTime(entry: Entry, request: BridgeRequest, deps: HandleDeps): Promise<MergeAnswer> {
  const leftMs = leftOf(entry, ttlOf(request), deps.nowMs());
  if (leftMs <= 0) throw new ColonnadeError('expired', 'the time of the request is over');
  const budgetMs = Math.max(leftMs / 2, leftMs - ERROR_MARGIN_MS - GUARD_MS);
  const { token, master, minion_id: minionId, pillarenv } = request;
  const call = startCall(budgetMs, request.traceparent);
  return await within(
    deps.answer({ token, master, minionId, pillarenv }, call),
    budgetMs + GUARD_MS,
    outOfTime,
  );
}

/**
 * Milliseconds left of an entry. Its id may lie in the future: a master can choose it, and Redis goes on counting from
 * the newest one when its clock was set back. The time it asked for is the most it gets, or it would hold its place.
 */
function leftOf(entry: Entry, ttlMs: number, nowMs: number): number {
  return Math.min(ttlMs, startOf(entry.id) + ttlMs - nowMs);
}

function outOfTime(): ColonnadeError {
  return new ColonnadeError('unavailable', 'the pillar was not ready in time');
}

/** What somebody may not have asked for: on record before it is answered. */
export function isDenial(code: BridgeErrorCode): boolean {
  return code === 'unauthorized' || code === 'forbidden' || code === 'overloaded';
}

/**
 * Puts a refusal on record. A denial is answered only then: when that fails, the caller learns that, and nothing else.
 * Other failures are answered at once, since what failed may be the very thing that records.
 */
async function onRecord(
  error: ColonnadeError,
  entry: Entry,
  request: BridgeRequest | undefined,
  deps: HandleDeps,
): Promise<ColonnadeError> {
  const { code, message: reason } = toBridgeError(error);
  const { master } = entry;
  const { minion_id: minionId, pillarenv } = request ?? {};
  const recorded = deps.recordRefusal({ code, reason, master, minionId, pillarenv });
  try {
    if (isDenial(code)) await recorded;
    else recorded.catch(() => undefined);
    return error;
  } catch (thrown) {
    return new ColonnadeError('unavailable', 'a refusal could not be put on record', { cause: thrown });
  }
}

/** The reply does not stay longer than somebody may wait for it. */
function timesOf(
  entry: Entry,
  request: BridgeRequest | undefined,
  deps: HandleDeps,
): Omit<StoredReply, 'text'> {
  const ttlMs = ttlOf(request);
  const leftMs = startOf(entry.id) + ttlMs - deps.nowMs();
  const keepMs = Math.ceil(Math.min(Math.max(leftMs, 0), ttlMs) + KEEP_SLACK_MS);
  return { master: entry.master, entryId: entry.id, ttlMs, keepMs };
}
