import type { Lease } from '../port.ts';
import { checkFence, checkTtl } from '../rules/lease.ts';
import type { Db } from './connection.ts';
import type { Jobs } from './protocol.ts';

type LeaseRow = { holder: string; fence: number; expires_at_ms: number };

/**
 * Takes or renews a lease. A holder that renews in time keeps its fence; whoever takes a lease that ran out, be it
 * the same holder, gets a higher one.
 */
export function acquireLease(db: Db, ask: Jobs['acquireLease']['ask'], nowMs: number): Lease | undefined {
  const { name, holder, ttlMs } = ask;
  checkTtl(ttlMs);
  const row = db.get<LeaseRow>('SELECT holder, fence, expires_at_ms FROM leases WHERE name = ?', name);
  const alive = row !== undefined && row.expires_at_ms > nowMs;
  if (alive && row.holder !== holder) {
    // Its clock or ours was set: nobody waits for longer than a lease lives.
    if (row.expires_at_ms > nowMs + ttlMs)
      db.run('UPDATE leases SET expires_at_ms = ? WHERE name = ?', nowMs + ttlMs, name);
    return undefined;
  }
  const fence = alive ? row.fence : (row?.fence ?? 0) + 1;
  const expiresAtMs = nowMs + ttlMs;
  db.run('INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)', name, holder, fence, expiresAtMs);
  return { name, holder, fence, expiresAtMs };
}

/** Lets another take it at once; the row stays, since its fence must never go down. */
export function releaseLease(db: Db, { name, holder }: Jobs['releaseLease']['ask']): void {
  db.run('UPDATE leases SET expires_at_ms = 0 WHERE name = ? AND holder = ?', name, holder);
}

/** @throws ColonnadeError `conflict` when the fence is not the lease's newest: nothing is dropped. */
export function dropOutbox(db: Db, { tick, index, lease, fence }: Jobs['dropOutbox']['ask']): void {
  const row = db.get<{ fence: number }>('SELECT fence FROM leases WHERE name = ?', lease);
  checkFence(row?.fence === fence);
  db.run('DELETE FROM outbox WHERE (tick, idx) <= (?, ?)', tick, index);
}
