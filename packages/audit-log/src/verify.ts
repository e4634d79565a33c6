import type { AuditAnchor } from '@colonnade/contracts';
import { nextHead } from './chain.ts';
import { type AnchorCheck, createAnchorCheck, type Place } from './compare-anchors.ts';
import { type JournalRecord, parseHeader, parseRecord } from './journal-format.ts';
import { isUnreadable, type LogPart, listLogParts, readJournalLines, readLogLines } from './log-files.ts';
import { goesOn, isBeginning, judgeFirst, judgeHeader } from './sequence.ts';

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
    | 'line_added'
    | 'journal_broken'
    | 'chain_broken'
    /** Sequences that no record accounts for. */
    | 'sequence_jump'
    /** Another stream, or other numbers, and no gap record that says so. */
    | 'numbering_changed'
    /** The journal is here and its log is not. */
    | 'file_missing'
    /** The log cannot be read to its end: a compressed file that is cut or damaged. */
    | 'file_unreadable'
    | 'anchor_differs'
    | 'anchor_missing'
    | 'no_anchor_agrees';
  detail?: string;
};

export type Verification = {
  /** Lines whose place in the chain is right. */
  lines: number;
  anchors: number;
  /** Journals whose log is not here: moved away, or gone. */
  withoutLog: string[];
  fault: Fault | undefined;
};

/** A writer rotates, compresses and removes files while they are read: so often is begun again. */
const TRIES = 5;

/**
 * Walks the hash chain over every file of a log and compares it with the anchors of the stream. Whoever changes, removes or moves a
 * line and makes journal and chain anew still differs from an anchor; whoever cuts the end off is behind one.
 * @param anchors as stored in `AUDIT_ANCHORS`, oldest first; read before this is called, since the log goes on
 * @returns what was found up to the first fault
 * @throws ColonnadeError `not_found` when there is no such folder
 */
export async function verifyLog(logPath: string, anchors: readonly AuditAnchor[]): Promise<Verification> {
  for (let tried = 1; ; tried += 1) {
    const parts = await listLogParts(logPath);
    const result = await walkParts(logPath, parts, createAnchorCheck(anchors));
    if (result.fault === undefined || tried === TRIES) return result;
    if (JSON.stringify(await listLogParts(logPath)) === JSON.stringify(parts)) return result;
  }
}

async function walkParts(
  logPath: string,
  parts: readonly LogPart[],
  anchors: AnchorCheck,
): Promise<Verification> {
  const result: Verification = { lines: 0, anchors: 0, withoutLog: [], fault: undefined };
  let walk: Place | undefined;
  let kept = false;
  for (const part of parts) {
    kept ||= part.log !== undefined;
    const { journal } = part;
    if (journal === undefined) continue;
    // What a writer is about to vouch for, or was when it was killed, stands at the end of the newest file.
    const growing = part === parts.at(-1);
    // Rotation removes from the old end, a log before its journal; anything else that is gone was taken away.
    const mayBeGone = !kept && !growing;
    try {
      walk = await verifyPart({ ...part, journal, growing, mayBeGone }, walk, anchors, result);
    } catch (thrown) {
      if (!isUnreadable(thrown)) throw thrown;
      result.fault = { file: part.name, line: 0, seq: walk?.seq ?? 0, what: 'file_unreadable' };
    }
    if (result.fault !== undefined) break;
  }
  result.fault ??= anchors.judge(logPath, walk, result);
  result.anchors = anchors.met();
  return result;
}

type WalkedPart = LogPart & { journal: string; growing: boolean; mayBeGone: boolean };

async function verifyPart(
  part: WalkedPart,
  before: Place | undefined,
  anchors: AnchorCheck,
  result: Verification,
): Promise<Place | undefined> {
  const fail = (what: Fault['what'], line: number, seq: number): undefined => {
    result.fault = { file: part.name, line, seq, what };
  };
  const records = readJournalLines(part.journal)[Symbol.asyncIterator]();
  const first = await records.next();
  const header = first.done === true ? undefined : tryHeader(first.value);
  if (header === undefined) return fail('journal_broken', 0, 0);
  const wrong = judgeHeader(before, header);
  if (wrong !== undefined) return fail(wrong, 0, header.seq);
  let walk: Place = { head: header.head, seq: header.seq, stream: header.stream };
  anchors.pass(walk, { file: part.name, line: 0 }, true);
  if (part.log === undefined) result.withoutLog.push(part.name);
  const lines = part.log === undefined ? undefined : readLogLines(part.log, header.base);
  let number = 0;
  let last: JournalRecord | undefined;
  for (let next = await records.next(); next.done !== true; next = await records.next()) {
    const record = parseRecord(next.value);
    if (record === undefined) {
      if (part.growing && (await records.next()).done === true) break;
      return fail('journal_broken', number, walk.seq);
    }
    if (record.kind !== 's') number += 1;
    const { what, line } = await compareLine(part, lines, record, walk.head);
    if (what !== undefined) return fail(what, number, record.seq);
    if (line !== undefined) result.lines += 1;
    const leap = last === undefined ? judgeFirst(before, header, record) : undefined;
    if (leap !== undefined) return fail(leap, number, record.seq);
    if (!goesOn(walk.seq, last, record, line)) return fail('sequence_jump', number, record.seq);
    if (last === undefined && isBeginning(header, record)) anchors.beginsAfter(walk);
    last = record;
    walk = { ...walk, head: record.head, seq: record.seq };
    // The record that opens a file belongs to what was before it, and so does an anchor at its sequence.
    if (record.kind !== 'p') anchors.pass(walk, { file: part.name, line: number }, walk.seq === header.seq);
  }
  if (!part.growing && (await lines?.next())?.done === false) return fail('line_added', number + 1, walk.seq);
  // Without a record it has said nothing of other numbers: the next file still has to.
  return last === undefined ? (before ?? walk) : walk;
}

async function compareLine(
  { mayBeGone }: WalkedPart,
  lines: AsyncGenerator<string> | undefined,
  record: JournalRecord,
  head: string,
): Promise<{ what?: Fault['what']; line?: string }> {
  if (record.kind === 's') return record.head === head ? {} : { what: 'journal_broken' };
  if (lines === undefined) return mayBeGone ? {} : { what: 'file_missing' };
  const next = await lines.next();
  if (next.done === true) return { what: 'line_missing' };
  const line = next.value;
  if (nextHead(head, record.seq, Buffer.from(line)) !== record.head) return { what: 'line_changed' };
  return { line };
}

function tryHeader(line: string) {
  try {
    return parseHeader(line);
  } catch {
    return undefined;
  }
}
