import { hash } from 'node:crypto';
import type { JournalRecord } from './journal-format.ts';

/** The hash before the first line of all. */
export const CHAIN_START = '0'.repeat(64);

/** What of a record its hash covers beside the line; where the line ends follows from the lines. */
export type Chained = Pick<JournalRecord, 'kind' | 'seq' | 'storedAtNs'>;

const BEFORE_LINE = 32 + 8 + 8 + 1;
/** Used again for each record: hashing ends before anything else can happen. A longer line has one of its own. */
const scratch = Buffer.alloc(16 * 1024);

/**
 * The chain's head after one more line: SHA-256 over the head before, the stream sequence and its time (8 bytes each, big endian), the
 * letter of the record's kind, and the line without its line end. Changing, removing or moving a line changes every head after it.
 */
export function nextHead(head: string, { kind, seq, storedAtNs }: Chained, line: Uint8Array): string {
  // In one piece and one call: this runs for every record, and an object of a hash costs as much as the hash.
  const size = BEFORE_LINE + line.length;
  const input = size <= scratch.length ? scratch.subarray(0, size) : Buffer.allocUnsafe(size);
  input.write(head, 0, 'hex');
  input.writeBigUInt64BE(BigInt(seq), 32);
  input.writeBigUInt64BE(BigInt.asUintN(64, storedAtNs), 40);
  input.write(kind, 48, 'latin1');
  input.set(line, BEFORE_LINE);
  return hash('sha256', input, 'hex');
}
