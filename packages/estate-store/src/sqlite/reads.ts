import type { TgtType } from '@colonnade/contracts';
import type {
  ApiTokenRecord,
  Clock,
  CollectionRecord,
  EstateStore,
  MasterRecord,
  MinionFilter,
  MinionRecord,
  OutboxRow,
  Page,
  PillarFilter,
  PillarRecord,
} from '../port.ts';
import type { HistoryFloor, PillarVersion, ScopeHistory } from '../port-history.ts';
import { checkLimit, cutPage, minionCursor, readMinionCursor } from '../rules/page.ts';
import type { Db } from './connection.ts';
import * as rows from './rows.ts';

/** The queries, each inside an open read transaction. */

type PageAsk = Parameters<EstateStore['listPillars']>[1];

export function readPillar(db: Db, pid: string): PillarRecord | undefined {
  const row = db.get<rows.PillarRow>('SELECT * FROM pillars WHERE pid = ?', pid);
  return row && rows.toPillar(row);
}

export function findPillar(db: Db, tgtType: TgtType, tgtId: string, name: string, pillarenv: string) {
  const row = db.get<rows.PillarRow>(
    'SELECT * FROM pillars WHERE tgt_type = ? AND tgt_id = ? AND name = ? AND pillarenv = ?',
    ...[tgtType, tgtId, name, pillarenv],
  );
  return row && rows.toPillar(row);
}

export function listPillars(db: Db, filter: PillarFilter, page: PageAsk): Page<PillarRecord> {
  const { tgtTypes, tgtId, pillarenv, name, master } = filter;
  checkLimit(page.limit);
  const conditions = ['tgt_type IN (SELECT value FROM json_each(?))', 'pid > ?'];
  const params: string[] = [JSON.stringify(tgtTypes), page.after ?? ''];
  for (const [column, wanted] of Object.entries({ tgt_id: tgtId, pillarenv, name, of_master: master })) {
    if (wanted === undefined) continue;
    conditions.push(`${column} = ?`);
    params.push(wanted);
  }
  const sql = `SELECT * FROM pillars WHERE ${conditions.join(' AND ')} ORDER BY pid LIMIT ?`;
  const found = db.all<rows.PillarRow>(sql, ...params, page.limit + 1);
  return cutPage(found.map(rows.toPillar), page.limit, ({ pid }) => pid);
}

export function listVersions(
  db: Db,
  pid: string,
  page: { after: number; limit: number } = { after: 0, limit: -1 },
): readonly PillarVersion[] {
  const sql = 'SELECT * FROM pillar_versions WHERE pid = ? AND tick > ? ORDER BY tick LIMIT ?';
  const found = db.all<Parameters<typeof rows.toVersion>[0]>(sql, pid, page.after, page.limit);
  return found.map(rows.toVersion);
}

export function getVersion(db: Db, pid: string, tick?: number): PillarVersion | undefined {
  const row = db.get<Parameters<typeof rows.toVersion>[0]>(
    `SELECT * FROM pillar_versions WHERE pid = ? ${tick === undefined ? '' : 'AND tick = ?'} ORDER BY tick DESC LIMIT 1`,
    ...[pid, ...(tick === undefined ? [] : [tick])],
  );
  return row && rows.toVersion(row);
}

export function readHistoryFloor(db: Db): HistoryFloor {
  const floor = db.get<HistoryFloor>('SELECT history_floor AS tick, history_floor_ms AS "atMs" FROM meta');
  return { tick: floor?.tick ?? 0, atMs: floor?.atMs ?? 0 };
}

/** Values are left out: they would be read whole for nothing. */
export function readScopeHistory(
  db: Db,
  clock: Clock,
  pillarenv: string,
  { pids, limit }: { pids: readonly string[] | undefined; limit: number },
): ScopeHistory {
  const { incarnation, tick } = clock;
  const historyFloor = readHistoryFloor(db);
  const only = pids === undefined ? '' : 'AND pid IN (SELECT value FROM json_each(?))';
  const found = db.all<rows.MarkRow>(
    `SELECT pid, tick, op, purged, tgt_type, tgt_id, pillarenv, name, is_secret, updated_at_ms FROM pillar_versions
     WHERE pid IN (SELECT pid FROM pillar_versions WHERE pillarenv = ? ${only}) ORDER BY pid, tick LIMIT ?`,
    ...[pillarenv, ...(pids === undefined ? [] : [JSON.stringify(pids)]), limit + 1],
  );
  const marks = found.length > limit ? undefined : found.map(rows.toMark);
  return { clock: { incarnation, tick }, historyFloor, marks };
}

export function readCollection(db: Db, id: string): CollectionRecord | undefined {
  const row = db.get<rows.CollectionRow>('SELECT * FROM collections WHERE id = ?', id);
  return row && rows.toCollection(row);
}

export function listCollections(db: Db): readonly CollectionRecord[] {
  return db.all<rows.CollectionRow>('SELECT * FROM collections ORDER BY id').map(rows.toCollection);
}

export function readBranch(db: Db, id: string): readonly CollectionRecord[] {
  const sql = `
    WITH RECURSIVE up (id, parent_id, distance) AS (
      SELECT id, parent_id, 0 FROM collections WHERE id = ?
      UNION ALL SELECT c.id, c.parent_id, up.distance + 1 FROM collections c JOIN up ON c.id = up.parent_id
    )
    SELECT c.* FROM up JOIN collections c ON c.id = up.id ORDER BY up.distance DESC`;
  return db.all<rows.CollectionRow>(sql, id).map(rows.toCollection);
}

export function readMaster(db: Db, id: string): MasterRecord | undefined {
  const row = db.get<rows.MasterRow>('SELECT * FROM masters WHERE id = ?', id);
  return row && rows.toMaster(row);
}

export function listMasters(db: Db): readonly MasterRecord[] {
  return db.all<rows.MasterRow>('SELECT * FROM masters ORDER BY id').map(rows.toMaster);
}

export function readMinion(db: Db, master: string, id: string): MinionRecord | undefined {
  const row = db.get<rows.MinionRow>(`${rows.SELECT_MINION} WHERE m.master = ? AND m.id = ?`, master, id);
  return row && rows.toMinion(row);
}

/** Ordered by master and id. */
export function listMinions(db: Db, filter: MinionFilter, page: PageAsk): Page<MinionRecord> {
  checkLimit(page.limit);
  const after = readMinionCursor(page.after);
  const conditions = ['(m.master, m.id) > (?, ?)'];
  const params = [after.master, after.id];
  if (filter.master !== undefined) {
    conditions.push('m.master = ?');
    params.push(filter.master);
  }
  if (filter.collections !== undefined) {
    conditions.push(
      'EXISTS (SELECT 1 FROM minion_collections c WHERE c.collection_id IN (SELECT value FROM json_each(?)) AND c.master = m.master AND c.minion_id = m.id)',
    );
    params.push(JSON.stringify(filter.collections));
  }
  const sql = `${rows.SELECT_MINION} WHERE ${conditions.join(' AND ')} ORDER BY m.master, m.id LIMIT ?`;
  const found = db.all<rows.MinionRow>(sql, ...params, page.limit + 1);
  return cutPage(found.map(rows.toMinion), page.limit, minionCursor);
}

export function readToken(db: Db, id: string): ApiTokenRecord | undefined {
  const row = db.get<rows.TokenRow>('SELECT * FROM tokens WHERE id = ?', id);
  return row && rows.toToken(row);
}

export function listTokens(db: Db): readonly ApiTokenRecord[] {
  return db.all<rows.TokenRow>('SELECT * FROM tokens ORDER BY id').map(rows.toToken);
}

export function findIdempotent(db: Db, scope: string, nowMs: number) {
  const row = db.get<rows.AnswerRow>(
    'SELECT * FROM idempotency WHERE scope = ? AND expires_at_ms > ?',
    ...[scope, nowMs],
  );
  return row && { fingerprint: row.fingerprint, response: rows.readValue(row.response), tick: row.tick };
}

export function readOutbox(db: Db, limit: number): readonly OutboxRow[] {
  return db
    .all<rows.OutboxTableRow>('SELECT * FROM outbox ORDER BY tick, idx LIMIT ?', limit)
    .map(rows.toOutboxRow);
}
