import { formatRecord, nextHead } from '@colonnade/audit-log';
import type { Place } from './recover.ts';

/** One message of the stream: its lines, or none (`s`) when this file holds nothing of it. */
export type Entry = {
  kind: 'e' | 's' | 'g';
  seq: number;
  storedAtNs: bigint;
  lines: readonly Uint8Array[];
};

/** What is written at once: lines for the log, their records for the journal, and where that leaves the file. */
export type Chunk = { data: Buffer; records: Buffer; place: Place };

const LINE_END = Buffer.from('\n');

/** How many entries from the front take no more than `room` bytes. */
export function countFitting(entries: readonly Entry[], room: number): number {
  let left = room;
  for (const [i, { lines }] of entries.entries()) {
    for (const line of lines) left -= line.length + 1;
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
  for (const { kind, seq, storedAtNs, lines } of entries) {
    for (const [i, line] of lines.entries()) {
      parts.push(line, LINE_END);
      at += line.length + 1;
      const part = i < lines.length - 1 ? 'p' : kind;
      head = nextHead(head, { kind: part, seq, storedAtNs }, line);
      records += formatRecord({ kind: part, seq, storedAtNs, end: at, head });
    }
    if (lines.length === 0) records += formatRecord({ kind: 's', seq, storedAtNs, end: at, head });
    lastSeq = seq;
    lastStoredAtNs = storedAtNs;
  }
  return {
    data: Buffer.concat(parts),
    records: Buffer.from(records, 'latin1'),
    place: { ...place, seq: lastSeq, storedAtNs: lastStoredAtNs, head },
  };
}
