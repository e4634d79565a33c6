import { decode, encodeText, int } from '@colonnade/contracts';
import { z } from 'zod';

/**
 * The file beside a log that says what is in it. First a header, then one line for each line of the log, written after the
 * log's line is on the disk: `kind seq storedAtNs end head`. It is what makes the log exact: whatever stands in the
 * log beyond the last record was not acknowledged, and is cut off.
 */
export type JournalRecord = {
  /**
   * `e` an event; `p` one that is followed by more of the same message, and counts only with the last of them; `s` the
   * sequences up to here have no line (filtered, or a dead letter); `g` a gap record.
   */
  kind: 'e' | 'p' | 's' | 'g';
  /** Everything of the stream up to here is dealt with. */
  seq: number;
  storedAtNs: bigint;
  /** Where the log ends after this record, bytes. */
  end: number;
  head: string;
};

/** Any other one is refused: one of an older release has to be moved away with its logs. */
export const JOURNAL_FORMAT = 'colonnade-audit-chain/2' as const;

const zJournalHeader = z.strictObject({
  format: z.literal(JOURNAL_FORMAT),
  /** When the stream was made that the sequences belong to. */
  stream: z.string(),
  seq: int({ min: 0 }),
  stored_at_ns: z.string().regex(/^[0-9]+$/u),
  head: z.string().regex(/^[0-9a-f]{64}$/u),
  /** Which file the log is; every line in it is ours. */
  inode: z.string(),
  /** Name of the journal before this one; empty for the first. */
  previous: z.string(),
});
export type JournalHeader = z.infer<typeof zJournalHeader>;

const RECORD = /^([epsg]) (\d{1,16}) (\d{1,20}) (\d{1,16}) ([0-9a-f]{64})$/u;

export function formatHeader(header: JournalHeader): string {
  return `${encodeText(zJournalHeader, header)}\n`;
}

/** @throws ColonnadeError `bad_request` */
export function parseHeader(line: string): JournalHeader {
  return decode(zJournalHeader, line);
}

export function formatRecord({ kind, seq, storedAtNs, end, head }: JournalRecord): string {
  return `${kind} ${seq} ${storedAtNs} ${end} ${head}\n`;
}

/** Undefined for a line that is none: the torn end of a journal. */
export function parseRecord(line: string): JournalRecord | undefined {
  const [, kind, seq, storedAtNs, end, head] = RECORD.exec(line) ?? [];
  if (head === undefined) return undefined;
  return {
    kind: kind as JournalRecord['kind'],
    seq: Number(seq),
    storedAtNs: BigInt(storedAtNs ?? 0),
    end: Number(end),
    head,
  };
}
