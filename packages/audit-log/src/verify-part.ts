import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { nextHead } from './chain.ts';
import type { AnchorCheck, Place } from './compare-anchors.ts';
import { type JournalHeader, type JournalRecord, parseHeader, parseRecord } from './journal-format.ts';
import { type LogPart, type RawLine, readRawLines } from './log-files.ts';
import { readRemoval } from './removal.ts';
import { goesOn, isBeginning, judgeFirst, judgeHeader } from './sequence.ts';
import type { Fault, Verification } from './verify.ts';

/** What a walk over the files of a log knows. */
export type Walk = {
  /** Where the file before ended. */
  before: Place | undefined;
  /** Where the first file begins whose lines are here. */
  opened: (Place & { file: string }) | undefined;
  /** The first file without its lines, while none that has them came. */
  gone: { file: string; line: number; seq: number } | undefined;
  /** Heads at which what is kept begins, as records of removals name them. */
  removals: Set<string>;
  check: AnchorCheck;
};

/** How far the walk is in one file. */
type PartWalk = {
  place: Place;
  /** Lines of the log, and bytes of log and journal that are behind. */
  number: number;
  end: number;
  journalEnd: number;
  last: JournalRecord | undefined;
};

/** What stands behind the last record of a log that is written to is waited for: twice as long as a slow disk takes. */
const LOOK_MS = 50;
const LOOKS = 60;

/**
 * Walks one file.
 * @param growing the newest file, at whose end a write may be under way
 * @returns where it ends; undefined at a fault
 */
export async function verifyPart(
  part: LogPart,
  growing: boolean,
  walk: Walk,
  result: Verification,
): Promise<Place | undefined> {
  const { before } = walk;
  const fail = (what: Fault['what'], line: number, seq: number, detail?: string): undefined => {
    result.fault = { file: part.name, line, seq, what, ...(detail === undefined ? {} : { detail }) };
  };
  if (part.journal === undefined) return (await isUnvouched(part)) ? fail('file_unvouched', 0, 0) : before;
  const first = (await readRawLines(part.journal).next()).value as RawLine | undefined;
  const header = first?.ended === true ? tryHeader(first.bytes) : undefined;
  if (first === undefined || header === undefined) return fail('journal_broken', 0, 0);
  const wrong = judgeHeader(before, header);
  if (wrong !== undefined) return fail(wrong, 0, header.seq);
  const { head, seq, stream, stored_at_ns } = header;
  const place: Place = { head, seq, stream, storedAtNs: BigInt(stored_at_ns) };
  walk.check.pass(place, { file: part.name, line: 0 }, true);
  if (part.log === undefined) result.withoutLog.push(part.name);
  else walk.opened ??= { ...place, file: part.name };
  const at: PartWalk = { place, number: 0, end: 0, journalEnd: first.bytes.length + 1, last: undefined };
  for (let looks = 0, seen: number | undefined; ; looks += 1) {
    const what = await walkRecords({ ...part, journal: part.journal, growing }, header, at, walk, result);
    if (what !== undefined) return fail(what, at.number, at.place.seq);
    const size = growing && part.log !== undefined ? (await stat(part.log)).size : at.end;
    if (size < at.end) return fail('line_missing', at.number, at.place.seq);
    // What stood there at the first look is vouched for by now, or was cut off.
    if ((size === at.end || at.end >= (seen ?? size + 1)) && at.last?.kind !== 'p') break;
    seen ??= size;
    if (looks === LOOKS)
      return fail('line_added', at.number + 1, at.place.seq, 'no record vouches for it yet');
    await sleep(LOOK_MS);
  }
  // Without a record it has said nothing of other numbers: the next file still has to.
  return at.last === undefined ? (before ?? at.place) : at.place;
}

type WalkedPart = LogPart & { journal: string; growing: boolean };

/** Goes on from where the walk is to the end of the journal. @returns what is wrong, at the line where the walk is then */
async function walkRecords(
  part: WalkedPart,
  header: JournalHeader,
  at: PartWalk,
  walk: Walk,
  result: Verification,
): Promise<Fault['what'] | undefined> {
  const records = readRawLines(part.journal, at.journalEnd);
  const lines = part.log === undefined ? undefined : readRawLines(part.log, at.end);
  try {
    for (let next = await records.next(); next.done !== true; next = await records.next()) {
      const { bytes, ended } = next.value;
      const record = ended ? parseRecord(bytes.toString('latin1')) : undefined;
      if (record === undefined) {
        if (part.growing && (await records.next()).done === true) return undefined;
        return 'journal_broken';
      }
      const what = await takeRecord(part, record, lines, header, at, walk, result);
      if (what !== undefined) return what;
      at.journalEnd += bytes.length + 1;
    }
    if (part.growing || (await lines?.next())?.done !== false) return undefined;
    at.number += 1;
    return 'line_added';
  } finally {
    await lines?.return(undefined);
    await records.return(undefined);
  }
}

async function takeRecord(
  part: WalkedPart,
  record: JournalRecord,
  lines: AsyncGenerator<RawLine> | undefined,
  header: JournalHeader,
  at: PartWalk,
  walk: Walk,
  result: Verification,
): Promise<Fault['what'] | undefined> {
  const { place, last } = at;
  const before = place.seq;
  const opens = last === undefined;
  if (record.kind !== 's') at.number += 1;
  at.place = { ...place, seq: record.seq };
  const { what, line } = await compareLine(lines, record, place.head, at.end);
  if (what !== undefined) return what;
  if (record.kind !== 's' && line === undefined && !mayBeGone(part, at, walk)) return 'file_missing';
  if (line !== undefined) result.lines += 1;
  const leap = opens ? judgeFirst(walk.before, header, record) : undefined;
  if (leap !== undefined) return leap;
  const text = record.kind === 'g' ? line?.toString('utf8') : undefined;
  if (!goesOn(before, last, record, text)) return 'sequence_jump';
  const isLeap = record.kind === 'g' && record.seq > before;
  if (isLeap) walk.check.leaps(place, record.seq);
  const keptFrom = text === undefined ? undefined : readRemoval(text);
  if (keptFrom !== undefined) walk.removals.add(keptFrom);
  if (opens && isBeginning(header, record)) walk.check.beginsAfter(place);
  at.last = record;
  at.end = record.end;
  at.place = { ...place, seq: record.seq, head: record.head, storedAtNs: record.storedAtNs };
  // The record that opens a file, or says what is lost, belongs to what was before it, and so does an anchor at its sequence.
  const where = { file: part.name, line: at.number };
  if (record.kind !== 'p') walk.check.pass(at.place, where, isLeap || record.seq === header.seq);
  return undefined;
}

/** From the old end the sink removes files, a log before its journal; whether it did is judged at the end of the walk. */
function mayBeGone({ name, growing }: WalkedPart, { number, place }: PartWalk, walk: Walk): boolean {
  if (walk.opened !== undefined || growing) return false;
  walk.gone ??= { file: name, line: number, seq: place.seq };
  return true;
}

/** Holds the next line of a log against its record. */
export async function compareLine(
  lines: AsyncGenerator<RawLine> | undefined,
  record: JournalRecord,
  head: string,
  end: number,
): Promise<{ what?: Fault['what']; line?: Buffer }> {
  if (record.kind === 's') {
    return record.head === head && record.end === end ? {} : { what: 'journal_broken' };
  }
  if (lines === undefined) return {};
  const next = await lines.next();
  if (next.done === true || !next.value.ended) return { what: 'line_missing' };
  const line = next.value.bytes;
  if (nextHead(head, record, line) !== record.head) return { what: 'line_changed' };
  return record.end === end + line.length + 1 ? { line } : { what: 'journal_broken' };
}

/** While the sink begins a file, an empty log stands there without its journal for a moment. */
async function isUnvouched({ log }: LogPart): Promise<boolean> {
  return log !== undefined && (await stat(log)).size > 0;
}

function tryHeader(line: Buffer): JournalHeader | undefined {
  try {
    return parseHeader(line.toString('utf8'));
  } catch {
    return undefined;
  }
}
