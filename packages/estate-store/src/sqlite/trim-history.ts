import type { Retention, VersionOp } from '../port-history.ts';
import { checkRetention, cutOf, TRIM_PILLARS, TRIM_VERSIONS } from '../rules/retention.ts';
import type { Db } from './connection.ts';

/** The pids after one, in their order, one step in the index each. */
const NEXT_PIDS = `
  WITH RECURSIVE next (pid) AS (
    SELECT (SELECT min(pid) FROM pillar_versions WHERE pid > ?)
    UNION ALL SELECT (SELECT min(pid) FROM pillar_versions WHERE pid > next.pid) FROM next WHERE next.pid IS NOT NULL
  )
  SELECT pid FROM next WHERE pid IS NOT NULL LIMIT ?`;

/**
 * One batch of a trimming, inside the open transaction.
 * @returns how many versions were removed, and the pid to go on after; undefined when all were looked at
 */
export function trimHistory(
  db: Db,
  { retention, after }: { retention: Retention; after: string | undefined },
): { removed: number; next: string | undefined } {
  checkRetention(retention);
  const pids = db.all<{ pid: string }>(NEXT_PIDS, after ?? '', TRIM_PILLARS).map(({ pid }) => pid);
  let removed = 0;
  let done = after;
  for (const pid of pids) {
    removed += trimOne(db, pid, retention, TRIM_VERSIONS - removed);
    // The pillar may have more to remove: the next batch begins with it.
    if (removed === TRIM_VERSIONS) return { removed, next: done ?? '' };
    done = pid;
  }
  return { removed, next: pids.length < TRIM_PILLARS ? undefined : done };
}

function trimOne(db: Db, pid: string, { keep, beforeMs }: Retention, room: number): number {
  const newest = db.get<{ tick: number; op: VersionOp; updated_at_ms: number }>(
    'SELECT tick, op, updated_at_ms FROM pillar_versions WHERE pid = ? ORDER BY tick DESC LIMIT 1',
    pid,
  );
  if (newest === undefined) return 0;
  const beyondKeep = keep && tickOf(db, 'pid = ? ORDER BY tick DESC LIMIT 1 OFFSET ?', pid, keep);
  const beforeTime =
    beforeMs === undefined
      ? undefined
      : tickOf(db, 'pid = ? AND updated_at_ms < ? ORDER BY tick DESC LIMIT 1', pid, beforeMs);
  const { upTo, whole } = cutOf({ newest, beyondKeep, beforeTime });
  if (upTo === 0) return 0;
  if (whole) {
    const sql =
      'UPDATE meta SET history_floor = max(history_floor, ?), history_floor_ms = max(history_floor_ms, ?)';
    db.run(sql, newest.tick, newest.updated_at_ms);
  }
  return db.run(
    `DELETE FROM pillar_versions WHERE pid = ?1 AND tick IN
       (SELECT tick FROM pillar_versions WHERE pid = ?1 AND tick <= ?2 ORDER BY tick LIMIT ?3)`,
    ...[pid, upTo, room],
  );
}

function tickOf(db: Db, where: string, pid: string, param: number): number | undefined {
  return db.get<{ tick: number }>(`SELECT tick FROM pillar_versions WHERE ${where}`, pid, param)?.tick;
}
