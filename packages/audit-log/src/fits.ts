import { parseHeader, parseRecord } from './journal-format.ts';
import { readRawLines } from './log-files.ts';
import { compareLine } from './verify-part.ts';

/**
 * Whether a log holds, from its first byte, every line its journal vouches for; what is behind them is not looked at.
 * @throws what `parseHeader` throws for a file that is no journal
 */
export async function fitsJournal(log: string, journal: string): Promise<boolean> {
  const lines = readRawLines(log);
  let head: string | undefined;
  let end = 0;
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
      if (record === undefined) return false;
      const { what } = await compareLine(lines, record, head, end);
      if (what !== undefined) return false;
      ({ head, end } = record);
    }
    return head !== undefined;
  } finally {
    await lines.return(undefined);
  }
}
