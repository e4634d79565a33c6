import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseRecord } from '@colonnade/audit-log';

/**
 * Which lines a journal vouches for that are not in its log any more.
 * @param size bytes the log has now
 * @returns undefined where it lost no record of the stream
 */
export async function readLostLines(
  journal: string,
  size: number,
): Promise<{ from: number; to: number; count: number } | undefined> {
  let lost: { from: number; to: number; count: number } | undefined;
  for await (const line of createInterface({ input: createReadStream(journal), crlfDelay: Infinity })) {
    const record = parseRecord(line);
    if (record === undefined || record.end <= size || record.kind === 's' || record.kind === 'g') continue;
    lost = { from: lost?.from ?? record.seq, to: record.seq, count: (lost?.count ?? 0) + 1 };
  }
  return lost;
}
