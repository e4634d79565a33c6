import { createHash } from 'node:crypto';

/** The hash before the first line of all. */
export const CHAIN_START = '0'.repeat(64);

/**
 * The chain's head after one more line: SHA-256 over the head before, the stream sequence (8 bytes, big endian) and the
 * line without its line end. Changing, removing or moving a line changes every head after it.
 */
export function nextHead(head: string, seq: number, line: Uint8Array): string {
  const prefix = Buffer.allocUnsafe(40);
  prefix.write(head, 0, 'hex');
  prefix.writeBigUInt64BE(BigInt(seq), 32);
  return createHash('sha256').update(prefix).update(line).digest('hex');
}
