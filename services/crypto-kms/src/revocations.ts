import { statSync } from 'node:fs';
import path from 'node:path';
import { ColonnadeError, int } from '@colonnade/contracts';
import { z } from 'zod';
import {
  createStateFile,
  listStateDir,
  openStateDir,
  readStateFile,
  removeStateFile,
  stateFault,
} from './state-dir.ts';

/** Which tokens are no longer good. */
export type Revocations = {
  /** Durable, and seen by every process on the same state folder, when this returns. Again is no error. */
  revoke(jti: string, untilS: number): Promise<void>;
  /** @throws ColonnadeError `unavailable` when that cannot be known */
  isRevoked(jti: string): boolean;
};

const JTI = /^[A-Za-z0-9_-]{16,64}$/u;
const zRevocation = z.strictObject({ until_s: int({ min: 0 }) });

/**
 * One file per revoked token, `revoked/<jti>`: no list to rewrite, so two processes cannot undo each other, and nothing
 * to read again to stay in step. Files are removed once no token with that jti can still be in its time.
 */
export async function openRevocations(stateDir: string, nowS: () => number): Promise<Revocations> {
  const dir = path.join(stateDir, 'revoked');
  openStateDir(dir);
  await prune(dir, nowS());
  return {
    async revoke(jti, untilS) {
      if (!JTI.test(jti))
        throw new ColonnadeError('bad_request', 'jti is not one of this service', { field: 'jti' });
      await createStateFile(path.join(dir, jti), zRevocation, { until_s: untilS });
      await prune(dir, nowS());
    },
    isRevoked(jti) {
      if (!JTI.test(jti)) return true;
      try {
        if (statSync(path.join(dir, jti), { throwIfNoEntry: false }) !== undefined) return true;
        // A folder that is gone would read as "nothing is revoked".
        statSync(dir);
        return false;
      } catch (thrown) {
        throw stateFault(thrown);
      }
    },
  };
}

async function prune(dir: string, nowS: number): Promise<void> {
  for (const name of listStateDir(dir)) {
    const revocation = await readStateFile(path.join(dir, name), zRevocation);
    if (revocation !== undefined && revocation.until_s < nowS) await removeStateFile(path.join(dir, name));
  }
}
