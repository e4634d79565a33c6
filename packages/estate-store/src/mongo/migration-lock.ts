import { randomUUID } from 'node:crypto';
import type { Connection } from './connection.ts';
import { acquireLease, releaseLease } from './leases.ts';

export const MIGRATION_LOCK = 'colonnade:migration';

const LOCK_MS = 30_000;

/**
 * Held by whoever makes, migrates, fills or adopts an estate. Building an index may take long; a lock that runs out
 * all the same only lets another do once more what may be done twice.
 * @returns undefined while another process holds it
 */
export async function acquireMigrationLock({
  tables,
  limit,
}: Connection): Promise<AsyncDisposable | undefined> {
  const lock = { name: MIGRATION_LOCK, holder: randomUUID(), ttlMs: LOCK_MS };
  if ((await acquireLease(tables.leases, limit, lock)) === undefined) return undefined;
  const renewing = setInterval(() => {
    acquireLease(tables.leases, limit, lock).catch(() => undefined);
  }, LOCK_MS / 3);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(renewing);
      await releaseLease(tables.leases, limit, lock);
    },
  };
}
