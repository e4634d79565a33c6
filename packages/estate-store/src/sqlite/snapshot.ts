import type { ChangeKey, Clock, EstateQuery, EstateSnapshot, MasterRecord, MinionRecord } from '../port.ts';
import { changedWithoutReading, MAX_CHANGED, type ReadClock } from '../rules/clock.ts';
import type { Db } from './connection.ts';
import { listCollections, readMaster, readMinion } from './reads.ts';
import { type PillarRow, toPillar } from './rows.ts';
import { readTask } from './task-reads.ts';

/** Reads one snapshot inside the open read transaction. */
export function readSnapshot(db: Db, clock: ReadClock, query: EstateQuery): EstateSnapshot {
  const { incarnation, tick } = clock;
  return {
    clock: { incarnation, tick },
    changed: readChanged(db, clock, query.since),
    scopes: new Map(query.scopes.map((scope) => [scope, readScope(db, scope)])),
    collections: query.collections ? listCollections(db) : undefined,
    masters: new Map(query.masters.map((id): [string, MasterRecord | undefined] => [id, readMaster(db, id)])),
    minions: new Map(
      query.minions.map(({ master, id }): [string, MinionRecord | undefined] => [
        `${master}/${id}`,
        readMinion(db, master, id),
      ]),
    ),
    tasks: new Map((query.tasks ?? []).map((id) => [id, readTask(db, id)])),
  };
}

function readScope(db: Db, scope: string) {
  return db
    .all<PillarRow>('SELECT * FROM pillars WHERE pillarenv = ? ORDER BY name, pid', scope)
    .map(toPillar);
}

function readChanged(db: Db, clock: ReadClock, since: Clock | undefined): EstateSnapshot['changed'] {
  const known = changedWithoutReading(clock, since);
  if (since === undefined || known !== undefined) return known ?? 'all';
  const rows = db.all<{ key: ChangeKey }>(
    'SELECT DISTINCT key FROM changes WHERE tick > ? LIMIT ?',
    ...[since.tick, MAX_CHANGED + 1],
  );
  return rows.length > MAX_CHANGED ? 'all' : rows.map(({ key }) => key);
}
