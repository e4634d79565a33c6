import { statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import { openStateDir, stateFault } from '../state-dir.ts';

/**
 * Encryptions a replica may do for one byte in the file: it is written before they are done, so a replica that is killed counts too
 * many and never too few.
 */
export const USES_PER_BYTE = 16_384;

/** Encryptions with random nonces after which a key of AES-GCM should seal nothing more (NIST SP 800-38D, 8.3). */
export const USES_LIMIT = 2 ** 32;

/** How often each version of a key has encrypted, over all replicas. */
export type Uses = {
  /** Before a replica encrypts so many times. @throws ColonnadeError `unavailable` */
  claim(version: number, count: number): Promise<void>;
  /** At most so many encryptions were done. */
  count(version: number): number;
};

export function openUses(dir: string): Uses {
  openStateDir(dir);
  const left = new Map<number, number>();
  const fileOf = (version: number) => path.join(dir, `v${String(version).padStart(6, '0')}`);
  return {
    async claim(version, count) {
      // Taken before the wait: of two batches at once neither uses what the other has claimed.
      const after = (left.get(version) ?? 0) - count;
      left.set(version, after);
      if (after >= 0) return;
      const bytes = Math.ceil(-after / USES_PER_BYTE);
      left.set(version, after + bytes * USES_PER_BYTE);
      try {
        await append(fileOf(version), bytes);
      } catch (thrown) {
        left.set(version, (left.get(version) ?? 0) - bytes * USES_PER_BYTE);
        throw stateFault(thrown);
      }
    },
    count: (version) => (statSync(fileOf(version), { throwIfNoEntry: false })?.size ?? 0) * USES_PER_BYTE,
  };
}

async function append(file: string, bytes: number): Promise<void> {
  await using handle: FileHandle = await open(file, 'a', 0o600);
  await handle.write(Buffer.alloc(bytes, '.'));
  await handle.datasync();
}
