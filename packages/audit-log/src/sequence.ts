import type { Place } from './compare-anchors.ts';
import type { JournalHeader, JournalRecord } from './journal-format.ts';
import { readEvent } from './read-message.ts';

/** Whether a file goes on from the one before it: with its head, and no sequence left out between them. */
export function judgeHeader(
  before: Place | undefined,
  header: JournalHeader,
): 'chain_broken' | 'sequence_jump' | undefined {
  if (before === undefined) return undefined;
  if (before.head !== header.head) return 'chain_broken';
  return before.stream === header.stream && header.seq > before.seq ? 'sequence_jump' : undefined;
}

/** Where stream or numbers are other ones than in the file before, the first record has to say so. */
export function judgeFirst(
  before: Place | undefined,
  header: JournalHeader,
  { kind }: JournalRecord,
): 'numbering_changed' | undefined {
  const same = before === undefined || (before.stream === header.stream && before.seq === header.seq);
  return same || kind === 'g' ? undefined : 'numbering_changed';
}

/** The first record of the first file of all, about what came before it. */
export function isBeginning(header: JournalHeader, { kind, seq }: JournalRecord): boolean {
  return header.previous === '' && kind === 'g' && seq === header.seq;
}

/**
 * Whether a record goes on from the one before it: each sequence of the stream is an event, has no line (`s`), or is within
 * the range that a gap record names.
 * @param line of the log; undefined where the file is not here
 */
export function goesOn(
  before: number,
  last: JournalRecord | undefined,
  { kind, seq }: JournalRecord,
  line: string | undefined,
): boolean {
  if (last?.kind === 'p') return seq === before && (kind === 'e' || kind === 'p');
  if (kind === 's') return seq > before;
  if (kind !== 'g') return seq === before + 1;
  if (seq < before) return false;
  return line === undefined || namesGap(line, seq > before ? { from: before + 1, to: seq } : undefined);
}

/** @param range what the record has to name; a record about the file itself, at the sequence where it stands, names another one */
function namesGap(line: string, range: { from: number; to: number } | undefined): boolean {
  const read = readEvent(Buffer.from(line));
  // The legacy text does not hold the range.
  if (!read.ok) return line.includes(' method="gap" ');
  const { verb, objectRef } = read.event;
  const { name } = (objectRef ?? {}) as Record<string, unknown>;
  return verb === 'gap' && (range === undefined || name === `${range.from}-${range.to}`);
}
