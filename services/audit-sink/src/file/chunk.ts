import { nextHead } from './chain.ts';
import { formatRecord, type JournalRecord } from './journal-format.ts';
import type { Place } from './recover.ts';

/** One step of the stream: a line, or none (`s`) for what this file does not hold. */
export type Entry = { kind: JournalRecord['kind']; seq: number; storedAtNs: bigint; line?: Uint8Array };

/** What is written at once: lines for the log, their records for the journal, and where that leaves the file. */
export type Chunk = { data: Buffer; records: Buffer; place: Place };

const LINE_END = Buffer.from('\n');

/** How many entries from the front take no more than `room` bytes. */
export function countFitting(entries: readonly Entry[], room: number): number {
  let left = room;
  for (const [i, { line }] of entries.entries()) {
    left -= line === undefined ? 0 : line.length + 1;
    if (left < 0) return i;
  }
  return entries.length;
}

/** @param end where the log ends before it */
export function buildChunk(entries: readonly Entry[], end: number, place: Place): Chunk {
  const parts: Uint8Array[] = [];
  let records = '';
  let at = end;
  let { head, seq: lastSeq, storedAtNs: lastStoredAtNs } = place;
  for (const { kind, seq, storedAtNs, line } of entries) {
    if (line !== undefined) {
      parts.push(line, LINE_END);
      at += line.length + 1;
      head = nextHead(head, seq, line);
    }
    records += formatRecord({ kind, seq, storedAtNs, end: at, head });
    lastSeq = seq;
    lastStoredAtNs = storedAtNs;
  }
  return {
    data: Buffer.concat(parts),
    records: Buffer.from(records, 'latin1'),
    place: { ...place, seq: lastSeq, storedAtNs: lastStoredAtNs, head },
  };
}
