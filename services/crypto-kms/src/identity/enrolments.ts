import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import path from 'node:path';
import { ColonnadeError, ENROLMENT_TOKEN, int, type Workload, zWorkload } from '@colonnade/contracts';
import { z } from 'zod';
import { createStateFile, listStateDir, openStateDir, readStateFile, removeStateFile } from '../state-dir.ts';

const zEnrolment = z.strictObject({
  format: z.literal('colonnade-enrolment/1'),
  workload: zWorkload,
  secret_sha256: z.string().regex(/^[0-9a-f]{64}$/u),
  expires_at_ms: int({ min: 0 }),
});

/** Hosts that may come for their first identity: `enrolments/<sid>.json`, gone when it was used. */
export type Enrolments = {
  /** @returns the one-time token; only its hash is kept. @throws ColonnadeError `conflict`: that sid is there already */
  make(workload: Workload, sid: string, lifetimeS: number): Promise<{ token: string; expires_at_ms: number }>;
  /** Uses it up. Of several that try at once exactly one succeeds. @throws ColonnadeError `unauthorized` */
  use(token: string): Promise<{ workload: Workload; sid: string }>;
};

/** @throws ColonnadeError `misconfigured` when the folder is open to others */
export async function openEnrolments(stateDir: string, nowMs: () => number): Promise<Enrolments> {
  const dir = path.join(stateDir, 'enrolments');
  openStateDir(dir);
  const fileOf = (sid: string) => path.join(dir, `${sid}.json`);
  return {
    async make(workload, sid, lifetimeS) {
      await prune(dir, nowMs());
      const secret = randomBytes(32).toString('base64url');
      const expires_at_ms = nowMs() + lifetimeS * 1000;
      const made = await createStateFile(fileOf(sid), zEnrolment, {
        format: 'colonnade-enrolment/1',
        ...{ workload, secret_sha256: hash(secret).toString('hex'), expires_at_ms },
      });
      if (!made) throw new ColonnadeError('conflict', 'there is an enrolment of this id');
      return { token: `cole_${sid}_${secret}`, expires_at_ms };
    },
    async use(token) {
      const [, sid = '', secret = ''] = ENROLMENT_TOKEN.exec(token) ?? [];
      const found = sid === '' ? undefined : await readStateFile(fileOf(sid), zEnrolment);
      const kept = Buffer.from(found?.secret_sha256 ?? '00'.repeat(32), 'hex');
      const fits = timingSafeEqual(kept, hash(secret));
      if (found === undefined || !fits || found.expires_at_ms <= nowMs()) throw refuse();
      // Taking the file away is what uses the token: a second one finds none.
      if (!(await removeStateFile(fileOf(sid)))) throw refuse();
      return { workload: found.workload, sid };
    },
  };
}

async function prune(dir: string, nowMs: number): Promise<void> {
  for (const name of listStateDir(dir)) {
    const found = await readStateFile(path.join(dir, name), zEnrolment);
    if (found !== undefined && found.expires_at_ms <= nowMs) await removeStateFile(path.join(dir, name));
  }
}

function hash(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

function refuse(): ColonnadeError {
  return new ColonnadeError('unauthorized', 'the one-time token is unknown, used already or expired');
}
