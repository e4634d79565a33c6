import { createHash } from 'node:crypto';
import { open, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { listStateDir, openStateDir, stateFault } from './state-dir.ts';

/** Grants that were used; a grant is good once, whichever process it is shown to. */
export type UsedGrants = {
  /** @returns false when it was used before. @throws ColonnadeError `overloaded`, `unavailable` */
  use(kid: string, jti: string): Promise<boolean>;
};

/** Above the longest life of a grant plus both sides' clock skew. */
const KEEP_MS = 120_000;
const PRUNE_EVERY_MS = 30_000;
const MAX_LIVE = 50_000;

/** One empty file per used grant, made with O_EXCL: the file system decides who was first. */
export function openUsedGrants(stateDir: string): UsedGrants {
  const dir = path.join(stateDir, 'used-grants');
  openStateDir(dir);
  let live = 0;
  let pruned = Number.NEGATIVE_INFINITY;
  return {
    async use(kid, jti) {
      if (performance.now() - pruned > PRUNE_EVERY_MS) {
        pruned = performance.now();
        live = await prune(dir);
      }
      if (live >= MAX_LIVE) throw new ColonnadeError('overloaded', 'too many grants in a short time');
      const name = createHash('sha256').update(`${kid}\n${jti}`).digest('hex');
      try {
        const handle = await open(path.join(dir, name), 'wx', 0o600);
        await handle.close();
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return false;
        throw stateFault(thrown);
      }
      live += 1;
      return true;
    },
  };
}

/** Removes what no grant can match any more. @returns how many are left */
async function prune(dir: string): Promise<number> {
  let live = 0;
  for (const name of listStateDir(dir)) {
    const file = path.join(dir, name);
    const usedMs = await stat(file).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
    if (usedMs !== undefined && Date.now() - usedMs > KEEP_MS) await rm(file, { force: true });
    else live += 1;
  }
  return live;
}
