import type { SQLInputValue } from 'node:sqlite';
import type { ChangeKey, Clock } from '../port.ts';
import { asImportError, checkAllStaged, estateChanged, type PackedChange } from '../rules/import.ts';
import { refuseClosed } from '../rules/key-use.ts';
import { checkPidUnused } from '../rules/pillar-target.ts';
import { applyMutation } from './apply-batch.ts';
import type { Db } from './connection.ts';
import { keepTick } from './keep-tick.ts';
import { readClosedKids } from './key-use.ts';
import { checkTarget } from './mutations-pillar.ts';
import type { Jobs } from './protocol.ts';
import { PILLAR_FIELDS, type PillarRow } from './rows.ts';
import type { Tx } from './transaction.ts';

/** Rows a deletion takes at a time, so that its transaction stays short. */
const DROP_ROWS = 500;

const COLUMNS =
  'import_id, seq, kind, pid, tgt_type, tgt_id, name, pillarenv, value, is_secret, expect_tick, body';

/** Adds rows to an import; its first ones make it. */
export function stageImport(db: Db, { id, changes }: Jobs['stageImport']['ask'], nowMs: number): void {
  db.run('INSERT OR REPLACE INTO imports VALUES (?, ?)', id, nowMs);
  const last = db.get<{ seq: number | null }>(
    'SELECT max(seq) AS seq FROM import_rows WHERE import_id = ?',
    id,
  );
  let seq = last?.seq ?? 0;
  const sql = `INSERT INTO import_rows (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
  for (const change of changes) {
    seq += 1;
    db.run(sql, id, seq, change.kind, ...columnsOf(change));
  }
}

function columnsOf(change: PackedChange<string>): SQLInputValue[] {
  if (change.kind === 'pillar.create') {
    const { pid, tgtType, tgtId, name, pillarenv, value, isSecret } = change.record;
    return [pid, tgtType, tgtId, name, pillarenv, value, isSecret ? 1 : 0, null, null];
  }
  if (change.kind === 'pillar.update') {
    const { pid, expectTick = null, value, isSecret } = change;
    return [pid, null, null, null, null, value, isSecret ? 1 : 0, expectTick, null];
  }
  // No value of a pillar stands in these, and every other value is text already.
  return [null, null, null, null, null, null, null, null, JSON.stringify(change)];
}

/**
 * The switch. Pillars are moved by a handful of statements for all of them, not row by row: the transaction is as long
 * as it takes SQLite to write its pages.
 */
export function applyImport(db: Db, ask: Jobs['applyImport']['ask'], changeTicksKept: number): Clock {
  const { id, by, atMs } = ask;
  const isThere = db.get('SELECT 1 FROM imports WHERE id = ?', id) !== undefined;
  const found = db.get<{ n: number }>('SELECT count(*) AS n FROM import_rows WHERE import_id = ?', id)?.n;
  checkAllStaged(isThere ? (found ?? 0) : -1, ask.changes);
  for (const kid of readClosedKids(db)) {
    const staged = 'SELECT 1 FROM import_rows WHERE kid = ? AND import_id = ? LIMIT 1';
    if (db.get(staged, kid, id) !== undefined) refuseClosed([kid], [kid]);
  }
  return keepTick(db, ask, changeTicksKept, (tick, change) => {
    const tx: Tx = { db, tick, by, atMs, change };
    try {
      putOthers(tx, id);
      createPillars(tx, id);
      updatePillars(tx, id);
    } catch (thrown) {
      throw isBrokenKey(thrown) ? estateChanged() : asImportError(thrown);
    }
    keepVersions(tx, id);
    db.run('DELETE FROM imports WHERE id = ?', id);
  });
}

function putOthers(tx: Tx, id: string): void {
  for (let after = 0; ; ) {
    const rows = tx.db.all<{ seq: number; body: string }>(
      'SELECT seq, body FROM import_rows WHERE import_id = ? AND seq > ? AND body IS NOT NULL ORDER BY seq LIMIT ?',
      ...[id, after, DROP_ROWS],
    );
    for (const { body } of rows) applyMutation(tx, JSON.parse(body));
    if (rows.length < DROP_ROWS) return;
    after = rows.at(-1)?.seq ?? after;
  }
}

function createPillars(tx: Tx, id: string): void {
  const { db, by, atMs, tick } = tx;
  const used = `SELECT 1 FROM import_rows r WHERE r.import_id = ? AND r.kind = 'pillar.create'
    AND EXISTS (SELECT 1 FROM pillar_versions v WHERE v.pid = r.pid) LIMIT 1`;
  checkPidUnused(db.get(used, id) !== undefined);
  const targets = `SELECT DISTINCT tgt_type, tgt_id, pillarenv FROM import_rows
    WHERE import_id = ? AND kind = 'pillar.create'`;
  for (const { tgt_type, tgt_id, pillarenv } of db.all<PillarRow>(targets, id)) {
    checkTarget(tx, { tgtType: tgt_type as never, tgtId: tgt_id, pillarenv }, { newSince: tick });
    tx.change(`scope:${pillarenv}`);
  }
  db.run(
    `INSERT INTO pillars (${PILLAR_FIELDS}, tick)
     SELECT pid, tgt_type, tgt_id, name, pillarenv, value, is_secret, ?, ?, ?, ?, ? FROM import_rows
     WHERE import_id = ? AND kind = 'pillar.create'`,
    ...[by, by, atMs, atMs, tick, id],
  );
}

function updatePillars({ db, by, atMs, tick, change }: Tx, id: string): void {
  const staged = "import_id = ? AND kind = 'pillar.update'";
  const expected = db.get<{ n: number }>(`SELECT count(*) AS n FROM import_rows WHERE ${staged}`, id)?.n ?? 0;
  if (expected === 0) return;
  const changed = db.run(
    `UPDATE pillars SET value = r.value, is_secret = r.is_secret, updated_by = ?, updated_at_ms = ?, tick = ?
     FROM (SELECT pid, value, is_secret, expect_tick FROM import_rows WHERE ${staged}) r
     WHERE pillars.pid = r.pid AND (r.expect_tick IS NULL OR pillars.tick = r.expect_tick)`,
    ...[by, atMs, tick, id],
  );
  if (changed !== expected) throw estateChanged();
  const scopes = `SELECT DISTINCT p.pillarenv FROM import_rows r JOIN pillars p ON p.pid = r.pid WHERE r.${staged}`;
  for (const { pillarenv } of db.all<PillarRow>(scopes, id)) change(`scope:${pillarenv}` satisfies ChangeKey);
}

function keepVersions({ db }: Tx, id: string): void {
  const fields = PILLAR_FIELDS.split(', ').map((field) => `p.${field}`);
  db.run(
    `INSERT INTO pillar_versions (${PILLAR_FIELDS}, tick, op)
     SELECT ${fields.join(', ')}, p.tick, substr(r.kind, 8) FROM import_rows r JOIN pillars p ON p.pid = r.pid
     WHERE r.import_id = ? AND r.pid IS NOT NULL`,
    id,
  );
}

function isBrokenKey(thrown: unknown): boolean {
  const UNIQUE = 2067;
  const PRIMARY_KEY = 1555;
  return [UNIQUE, PRIMARY_KEY].includes((thrown as { errcode?: number }).errcode ?? 0);
}

/**
 * Forgets one import, or those idle since before a time, and deletes some of the rows that no import has any more.
 * @returns how many imports were forgotten, and whether there are rows left to delete
 */
export function dropImports(db: Db, ask: Jobs['dropImports']['ask']): { imports: number; more: boolean } {
  const imports =
    'id' in ask
      ? db.run('DELETE FROM imports WHERE id = ?', ask.id)
      : db.run('DELETE FROM imports WHERE touched_at_ms < ?', ask.idleSinceMs);
  const orphans = 'SELECT rowid FROM import_rows WHERE import_id NOT IN (SELECT id FROM imports) LIMIT ?';
  const deleted = db.run(`DELETE FROM import_rows WHERE rowid IN (${orphans})`, DROP_ROWS);
  return { imports, more: deleted === DROP_ROWS };
}
