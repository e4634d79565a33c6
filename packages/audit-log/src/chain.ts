import { hash } from 'node:crypto';

/** The hash before the first line of all. */
export const CHAIN_START = '0'.repeat(64);

/**
 * The chain's head after one more line: SHA-256 over the head before, the stream sequence (8 bytes, big endian) and the
 * line without its line end. Changing, removing or moving a line changes every head after it.
 */
export function nextHead(head: string, seq: number, line: Uint8Array): string {
  // In one piece and one call: this runs for every record, and an object of a hash costs as much as the hash.
  const input = Buffer.allocUnsafe(40 + line.length);
  input.write(head, 0, 'hex');
  input.writeBigUInt64BE(BigInt(seq), 32);
  input.set(line, 40);
  return hash('sha256', input, 'hex');
}
