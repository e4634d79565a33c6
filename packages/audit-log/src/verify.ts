import type { AuditAnchor } from '@colonnade/contracts';
import { nextHead } from './chain.ts';
import { type JournalRecord, parseHeader, parseRecord } from './journal-format.ts';
import { type LogPart, listLogParts, readJournalLines, readLogLines } from './log-files.ts';

/** The first thing that is wrong, and where. */
export type Fault = {
  file: string;
  /** Line of the file, from 1; 0: the file as a whole. */
  line: number;
  /** The stream sequence of that line; 0 when there is none. */
  seq: number;
  what: 'line_changed' | 'line_missing' | 'line_added' | 'journal_broken' | 'chain_broken' | 'anchor_differs';
};

export type Verification = {
  /** Lines whose place in the chain is right. */
  lines: number;
  anchors: number;
  /** Journals whose log is not here: moved away, or gone. */
  withoutLog: string[];
  fault: Fault | undefined;
};

type Walk = { head: string; seq: number; stream: string } | undefined;

/**
 * Walks the hash chain over every file of a log and compares it with the anchors of the stream. Whoever changes, removes or moves a
 * line and makes journal and chain anew still differs from an anchor.
 * @param anchors as stored in `AUDIT_ANCHORS`
 * @returns what was found up to the first fault
 */
export async function verifyLog(logPath: string, anchors: readonly AuditAnchor[]): Promise<Verification> {
  const result: Verification = { lines: 0, anchors: 0, withoutLog: [], fault: undefined };
  const wanted = new Map(anchors.map((a) => [`${a.stream_created} ${a.seq}`, a.chain]));
  let walk: Walk;
  const parts = await listLogParts(logPath);
  for (const part of parts) {
    if (part.journal === undefined) continue;
    // What a writer is about to vouch for, or was when it was killed, stands at the end of the newest file.
    const growing = part === parts.at(-1);
    walk = await verifyPart(part, part.journal, walk, { anchors: wanted, growing }, result);
    if (result.fault !== undefined) break;
  }
  return result;
}

async function verifyPart(
  part: LogPart,
  journal: string,
  before: Walk,
  { anchors, growing }: { anchors: ReadonlyMap<string, string>; growing: boolean },
  result: Verification,
): Promise<Walk> {
  const fail = (what: Fault['what'], line: number, seq: number): Walk => {
    result.fault = { file: part.name, line, seq, what };
    return undefined;
  };
  const records = readJournalLines(journal)[Symbol.asyncIterator]();
  const first = await records.next();
  const header = first.done === true ? undefined : tryHeader(first.value);
  if (header === undefined) return fail('journal_broken', 0, 0);
  if (before !== undefined && before.head !== header.head) return fail('chain_broken', 0, header.seq);
  let walk = { head: header.head, seq: header.seq, stream: header.stream };
  if (part.log === undefined) result.withoutLog.push(part.name);
  const lines = part.log === undefined ? undefined : readLogLines(part.log, header.base);
  let number = 0;
  for (let next = await records.next(); next.done !== true; next = await records.next()) {
    const record = parseRecord(next.value);
    if (record === undefined) {
      if (growing && (await records.next()).done === true) break;
      return fail('journal_broken', number, walk.seq);
    }
    if (record.kind !== 's') {
      number += 1;
      const what = lines === undefined ? undefined : await compareLine(lines, record, walk.head);
      if (what !== undefined) return fail(what, number, record.seq);
      if (lines !== undefined) result.lines += 1;
    } else if (record.head !== walk.head) return fail('journal_broken', number, record.seq);
    walk = { ...walk, head: record.head, seq: record.seq };
    // The record that opens a file belongs to what was before it, and so does an anchor at its sequence.
    if (walk.seq === header.seq || record.kind === 'p') continue;
    const anchored = anchors.get(`${walk.stream} ${walk.seq}`);
    if (anchored === undefined) continue;
    if (anchored !== walk.head) return fail('anchor_differs', number, walk.seq);
    result.anchors += 1;
  }
  if (!growing && (await lines?.next())?.done === false) return fail('line_added', number + 1, walk.seq);
  return walk;
}

async function compareLine(
  lines: AsyncGenerator<string>,
  record: JournalRecord,
  head: string,
): Promise<'line_changed' | 'line_missing' | undefined> {
  const line = await lines.next();
  if (line.done === true) return 'line_missing';
  return nextHead(head, record.seq, Buffer.from(line.value)) === record.head ? undefined : 'line_changed';
}

function tryHeader(line: string) {
  try {
    return parseHeader(line);
  } catch {
    return undefined;
  }
}
