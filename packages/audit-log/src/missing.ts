import type { SequenceRange } from './find.ts';
import { parseHeader, parseRecord } from './journal-format.ts';
import { listReadable, readRawLines } from './log-files.ts';

/**
 * Which sequences of a range no file here holds: files that are gone, gaps, and what the log has not reached yet. Of a range that is open
 * at one end only the other end counts.
 * @param range `from` 0 and the greatest `to` are open ends
 * @throws ColonnadeError `not_found` as findEvents
 */
export async function missingSequences(logPath: string, range: SequenceRange): Promise<SequenceRange[]> {
  const held: SequenceRange[] = [];
  for (const { journal } of await listReadable(logPath)) {
    if (journal !== undefined) held.push(...(await heldBy(journal)));
  }
  held.sort((a, b) => a.from - b.from);
  const greatest = Math.max(0, ...held.map(({ to }) => to));
  let next = range.from === 0 ? (held[0]?.from ?? 1) : range.from;
  const last = range.to === Number.MAX_SAFE_INTEGER ? Math.max(greatest, next) : range.to;
  const missing: SequenceRange[] = [];
  for (const { from, to } of held) {
    if (from > last) break;
    if (from > next) missing.push({ from: next, to: from - 1 });
    next = Math.max(next, to + 1);
  }
  if (next <= last) missing.push({ from: next, to: last });
  return missing;
}

/** Runs of sequences that a journal accounts for; what a gap record leaps over is not held. */
async function heldBy(journal: string): Promise<SequenceRange[]> {
  const held: SequenceRange[] = [];
  let before: number | undefined;
  for await (const { bytes } of readRawLines(journal)) {
    const text = bytes.toString('latin1');
    if (before === undefined) {
      before = tryStart(text);
      if (before === undefined) return [];
      continue;
    }
    const record = parseRecord(text);
    if (record === undefined) break;
    const run = held.at(-1);
    if (record.kind !== 'g' && run?.to === before) run.to = record.seq;
    else if (record.kind !== 'g') held.push({ from: before + 1, to: record.seq });
    before = record.seq;
  }
  return held.filter(({ from, to }) => from <= to);
}

function tryStart(header: string): number | undefined {
  try {
    return parseHeader(header).seq;
  } catch {
    return undefined;
  }
}
