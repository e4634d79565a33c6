import { stat } from 'node:fs/promises';
import { nextHead } from './chain.ts';
import { type JournalRecord, parseHeader, parseRecord } from './journal-format.ts';
import { type LogPart, type RawLine, readRawLines } from './log-files.ts';

/** Lines of a file that are not those its journal vouches for; `undefined` lines: it has none, or what stands there is no journal. */
export type Skipped = { file: string; lines: number | undefined };

type ReadablePart = LogPart & { log: string };

/**
 * The lines of a file that its journal vouches for, each with its record. One that was changed or added is left out; those
 * after it count again where they stand as they were.
 * @param onSkipped told at the end when something was left out; not of what stands behind the last record, where a write may be under way
 */
export async function* readVouched(
  part: ReadablePart,
  onSkipped: (skipped: Skipped) => void,
): AsyncGenerator<{ record: JournalRecord; bytes: Buffer }> {
  const { name, journal } = part;
  if (journal === undefined) {
    if ((await stat(part.log)).size > 0) onSkipped({ file: name, lines: undefined });
    return;
  }
  const lines = readRawLines(part.log);
  const pending: RawLine[] = [];
  let skipped = 0;
  // Records without their line since the last that has one.
  let unfit = 0;
  let head: string | undefined;
  try {
    for await (const { bytes: text, ended } of readRawLines(journal)) {
      if (head === undefined) {
        head = tryHead(text);
        if (head === undefined) return onSkipped({ file: name, lines: undefined });
        continue;
      }
      const record = ended ? parseRecord(text.toString('latin1')) : undefined;
      if (record === undefined) break;
      const before = head;
      head = record.head;
      if (record.kind === 's') continue;
      const found = await findLine(
        lines,
        pending,
        (bytes) => nextHead(before, record, bytes) === record.head,
      );
      unfit = found.bytes === undefined ? unfit + 1 : 0;
      skipped += found.skipped;
      if (found.bytes !== undefined) yield { record, bytes: found.bytes };
    }
  } finally {
    await lines.return(undefined);
  }
  if (skipped + unfit > 0) onSkipped({ file: name, lines: skipped + unfit });
}

function tryHead(header: Buffer): string | undefined {
  try {
    return parseHeader(header.toString('utf8')).head;
  } catch {
    return undefined;
  }
}

/** How many lines are looked at for one: more than that put before it, and the rest of the file is lost to the search. */
const AHEAD = 64;

/**
 * The line that fits: the next one, else one of those after it. Where none does, the line was changed or removed, and those that were
 * looked at are kept for the records after it.
 */
async function findLine(
  lines: AsyncGenerator<RawLine>,
  pending: RawLine[],
  fits: (bytes: Buffer) => boolean,
): Promise<{ bytes: Buffer | undefined; skipped: number }> {
  for (let i = 0; i < AHEAD; i += 1) {
    if (i === pending.length) {
      const next = await lines.next();
      if (next.done === true) break;
      pending.push(next.value);
    }
    const line = pending[i] as RawLine;
    if (!line.ended || !fits(line.bytes)) continue;
    pending.splice(0, i + 1);
    return { bytes: line.bytes, skipped: i };
  }
  return { bytes: undefined, skipped: 0 };
}
