import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditAnchor } from '@colonnade/contracts';
import { CHAIN_START } from './chain.ts';
import { createAnchorCheck, type Place } from './compare-anchors.ts';
import { isUnreadable, type LogPart, listLogParts } from './log-files.ts';
import { verifyPart, type Walk } from './verify-part.ts';

/** The first thing that is wrong, and where. */
export type Fault = {
  file: string;
  /** Line of the file, from 1; 0: the file as a whole. */
  line: number;
  /** The stream sequence of that line; 0 when there is none. */
  seq: number;
  what:
    | 'line_changed'
    | 'line_missing'
    /** A line that no record vouches for. */
    | 'line_added'
    | 'journal_broken'
    | 'chain_broken'
    /** Sequences that no record accounts for. */
    | 'sequence_jump'
    /** Another stream, or other numbers, and no gap record that says so. */
    | 'numbering_changed'
    /** The journal is here and its log is not. */
    | 'file_missing'
    /** The log is here and its journal is not. */
    | 'file_unvouched'
    /** The log cannot be read to its end: a compressed file that is cut or damaged. */
    | 'file_unreadable'
    /** What was before is not here, and no record of the sink says that it removed it. */
    | 'beginning_missing'
    | 'anchor_differs'
    | 'anchor_missing'
    | 'no_anchor_agrees';
  detail?: string;
};

/** A place in the stream; time in RFC 3339, of the record there. */
export type LogPoint = { seq: number; time: string };

export type Verification = {
  /** Lines whose place in the chain is right. */
  lines: number;
  anchors: number;
  /** Anchors that are older than what is kept, so that nothing here can agree with them. */
  olderAnchors: number;
  /** After which record the log begins, and with which it ends; undefined when there is none. */
  begins: LogPoint | undefined;
  ends: LogPoint | undefined;
  /** Journals whose log is not here: moved away, or gone. */
  withoutLog: string[];
  fault: Fault | undefined;
};

/** A writer rotates, compresses and removes files while they are read: so often is begun again. */
const TRIES = 5;
const AGAIN_MS = 100;

/**
 * Walks the hash chain over every file of a log and compares it with the anchors of the stream. Whoever changes, removes, adds or moves a
 * line and makes journal and chain anew still differs from an anchor; whoever cuts the end off is behind one; whoever cuts the
 * beginning off lacks the record of a removal, which the sink writes into the chain.
 * @param anchors as stored in `AUDIT_ANCHORS`, oldest first; read before this is called, since the log goes on
 * @returns what was found up to the first fault
 * @throws ColonnadeError `not_found` when there is no such folder
 */
export async function verifyLog(logPath: string, anchors: readonly AuditAnchor[]): Promise<Verification> {
  for (let tried = 1; ; tried += 1) {
    const parts = await listLogParts(logPath);
    const result = await walkParts(logPath, parts, anchors);
    if (result.fault === undefined || tried === TRIES) return result;
    await sleep(AGAIN_MS);
    if (JSON.stringify(await listLogParts(logPath)) === JSON.stringify(parts)) return result;
  }
}

async function walkParts(
  logPath: string,
  parts: readonly LogPart[],
  anchors: readonly AuditAnchor[],
): Promise<Verification> {
  const check = createAnchorCheck(anchors);
  const walk: Walk = { before: undefined, opened: undefined, gone: undefined, removals: new Set(), check };
  const result: Verification = {
    ...{ lines: 0, anchors: 0, olderAnchors: 0, withoutLog: [] },
    ...{ begins: undefined, ends: undefined, fault: undefined },
  };
  for (const part of parts) {
    try {
      walk.before = await verifyPart(part, part === parts.at(-1), walk, result);
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown;
      result.fault = { file: part.name, line: 0, seq: walk.before?.seq ?? 0, what: 'file_unreadable' };
    }
    if (result.fault !== undefined) break;
  }
  result.begins = pointOf(walk.opened);
  result.ends = pointOf(walk.before);
  result.fault ??= judgeBeginning(walk) ?? check.judge(logPath, walk, result);
  result.anchors = check.met();
  result.olderAnchors = check.passedOver();
  return result;
}

/** What is gone from the old end the sink has removed, and has written that into what is kept. */
function judgeBeginning({ opened, gone, removals }: Walk): Fault | undefined {
  if (opened !== undefined && (opened.head === CHAIN_START || removals.has(opened.head))) return undefined;
  if (gone !== undefined) return { ...gone, what: 'file_missing' };
  if (opened === undefined) return undefined;
  const detail = 'no record of the sink says that it removed what was before';
  return { file: opened.file, line: 0, seq: opened.seq, what: 'beginning_missing', detail };
}

function pointOf(place: Place | undefined): LogPoint | undefined {
  if (place === undefined) return undefined;
  return { seq: place.seq, time: new Date(Number(place.storedAtNs / 1_000_000n)).toISOString() };
}
