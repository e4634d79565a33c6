import { parseHeader, parseRecord } from './journal-format.ts';
import { readRawLines } from './log-files.ts';
import { compareLine } from './verify-part.ts';

/**
 * How much of a log is, from its first byte, what its journal vouches for: `all` of the journal's lines (what is behind them is not
 * looked at), their `beginning`, where the log ends within them, as in a copy that was made while it was written; or something `else`.
 * @throws what `parseHeader` throws for a file that is no journal
 */
export async function fitsJournal(log: string, journal: string): Promise<'all' | 'beginning' | 'else'> {
  const lines = readRawLines(log);
  let head: string | undefined;
  let end = 0;
  let fitting = 0;
  try {
    for await (const { bytes, ended } of readRawLines(journal)) {
      // A torn record counts for nothing, nor does its line.
      if (!ended) break;
      const text = bytes.toString('latin1');
      if (head === undefined) {
        head = parseHeader(bytes.toString('utf8')).head;
        continue;
      }
      const record = parseRecord(text);
      if (record === undefined) return 'else';
      const { what, line } = await compareLine(lines, record, head, end);
      if (what === 'line_missing' && fitting > 0) return 'beginning';
      if (what !== undefined) return 'else';
      if (line !== undefined) fitting += 1;
      ({ head, end } = record);
    }
    return head === undefined ? 'else' : 'all';
  } finally {
    await lines.return(undefined);
  }
}
