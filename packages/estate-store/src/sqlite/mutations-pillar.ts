import { ColonnadeError, type ResolvedTarget } from '@colonnade/contracts';
import type { Mutation } from '../port.ts';
import type { VersionOp } from '../port-history.ts';
import type { TaskState } from '../port-tasks.ts';
import type { PillarCreate, PillarUpdate } from '../rules/batch.ts';
import { checkExpect } from '../rules/expect.ts';
import {
  checkCollectionTarget,
  checkMinionTarget,
  checkPidUnused,
  neededTarget,
  twinExists,
} from '../rules/pillar-target.ts';
import { checkTaskTarget, checkTemplateTarget } from '../rules/task.ts';
import { PILLAR_FIELDS, type PillarRow } from './rows.ts';
import { hasRow, type Tx } from './transaction.ts';

/** @throws ColonnadeError conflict (pid used before) | already_exists | not_found | unknown_minion | bad_request */
export function createPillar(tx: Tx, { record }: PillarCreate<string>): void {
  checkPidUnused(isPidUsed(tx, record.pid));
  checkPlace(tx, record);
  insertPillar(tx, record, { by: tx.by, atMs: tx.atMs });
  copyVersion(tx, record.pid, 'create');
  tx.change(`scope:${record.pillarenv}`);
}

/** `made`: who made it, and when; a pillar that comes back keeps it. */
export function insertPillar(
  { db, by, atMs, tick }: Tx,
  record: PillarCreate<string>['record'],
  made: { by: string; atMs: number },
): void {
  const { pid, tgtType, tgtId, name, pillarenv, value, isSecret } = record;
  db.run(
    `INSERT INTO pillars (${PILLAR_FIELDS}, tick) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[pid, tgtType, tgtId, name, pillarenv, value, isSecret ? 1 : 0],
    ...[made.by, by, made.atMs, atMs, tick],
  );
}

/** @throws ColonnadeError not_found | precondition_failed */
export function updatePillar(tx: Tx, { pid, expectTick, value, isSecret }: PillarUpdate<string>): void {
  const pillar = findPillarRow(tx, pid, expectTick);
  if (isSecret && pillar.is_secret === 0) purgeVersions(tx, pid, 'is_secret = 0');
  tx.db.run(
    'UPDATE pillars SET value = ?, is_secret = ?, updated_by = ?, updated_at_ms = ?, tick = ? WHERE pid = ?',
    ...[value, isSecret ? 1 : 0, tx.by, tx.atMs, tx.tick, pid],
  );
  copyVersion(tx, pid, 'update');
  tx.change(`scope:${pillar.pillarenv}`);
}

/** @throws ColonnadeError not_found | precondition_failed */
export function deletePillar(
  tx: Tx,
  { pid, expectTick }: Extract<Mutation, { kind: 'pillar.delete' }>,
): void {
  const pillar = findPillarRow(tx, pid, expectTick);
  tx.db.run(
    'UPDATE pillars SET updated_by = ?, updated_at_ms = ?, tick = ? WHERE pid = ?',
    tx.by,
    tx.atMs,
    tx.tick,
    pid,
  );
  copyVersion(tx, pid, 'delete');
  tx.db.run('DELETE FROM pillars WHERE pid = ?', pid);
  tx.change(`scope:${pillar.pillarenv}`);
}

/** @throws ColonnadeError not_found when there never was such a pillar */
export function purgeHistory(tx: Tx, { pid }: Extract<Mutation, { kind: 'pillar.purgeHistory' }>): void {
  if (!isPidUsed(tx, pid)) throw new ColonnadeError('not_found', 'no such pillar');
  purgeVersions(tx, pid, 'tick NOT IN (SELECT tick FROM pillars p WHERE p.pid = pillar_versions.pid)');
}

/** Also when nothing is left to purge: a purge that is asked for again scrubs the file again. */
export function purgeVersions({ db, tick }: Tx, pid: string, which: string): void {
  db.run(`UPDATE pillar_versions SET value = 'null', purged = 1 WHERE pid = ? AND ${which}`, pid);
  db.run('UPDATE meta SET purge_tick = ?', tick);
}

type Found = Pick<PillarRow, 'pillarenv' | 'is_secret' | 'tick'>;

/** @throws ColonnadeError not_found | precondition_failed */
export function findPillarRow(tx: Tx, pid: string, expectTick: number | undefined): Found {
  const row = tx.db.get<Found>('SELECT pillarenv, is_secret, tick FROM pillars WHERE pid = ?', pid);
  checkExpect('pillar', row, expectTick);
  return row as Found;
}

/** Every change leaves the full row as it was right after it (a delete: the last contents, and who deleted). */
export function copyVersion(tx: Tx, pid: string, op: VersionOp): void {
  tx.db.run(
    `INSERT INTO pillar_versions (${PILLAR_FIELDS}, tick, op) SELECT ${PILLAR_FIELDS}, tick, ? FROM pillars WHERE pid = ?`,
    op,
    pid,
  );
}

/** Versions remember the pids that are gone. */
function isPidUsed({ db }: Tx, pid: string): boolean {
  return (
    hasRow(db, 'SELECT 1 FROM pillars WHERE pid = ?', pid) ||
    hasRow(db, 'SELECT 1 FROM pillar_versions WHERE pid = ?', pid)
  );
}

type Place = Pick<PillarCreate<string>['record'], 'pid' | 'tgtType' | 'tgtId' | 'name' | 'pillarenv'>;

/**
 * The target must be there, and no other pillar may have this place.
 * @throws ColonnadeError not_found | unknown_minion | conflict | bad_request | already_exists
 */
export function checkPlace(tx: Tx, place: Place): void {
  checkTarget(tx, place);
  const { pid, tgtType, tgtId, name, pillarenv } = place;
  const twin =
    'SELECT 1 FROM pillars WHERE tgt_type = ? AND tgt_id = ? AND name = ? AND pillarenv = ? AND pid <> ?';
  if (hasRow(tx.db, twin, tgtType, tgtId, name, pillarenv, pid)) throw twinExists();
}

/**
 * @param options `newSince`: the tick of an import, which may give pillars to tasks that it brings and that have ended
 * @throws ColonnadeError not_found | unknown_minion | conflict | bad_request: what a new pillar hangs on is not there
 */
export function checkTarget(
  { db }: Pick<Tx, 'db'>,
  record: ResolvedTarget,
  { newSince }: { newSince?: number } = {},
): void {
  const target = neededTarget(record);
  if (target?.kind === 'collection') {
    const sql = 'SELECT owner FROM collections WHERE id = ?';
    checkCollectionTarget(record, db.get<{ owner: string }>(sql, target.id));
  }
  if (target?.kind === 'minion') {
    checkMinionTarget(
      hasRow(db, 'SELECT 1 FROM minions WHERE master = ? AND id = ?', target.master, target.id),
    );
  }
  if (target?.kind === 'task') {
    const sql = 'SELECT state, tick FROM tasks WHERE id = ?';
    const found = db.get<{ state: TaskState; tick: number }>(sql, target.id);
    checkTaskTarget(record, found && { ...found, isNew: found.tick === newSince });
  }
  if (target?.kind === 'task_tpl') {
    checkTemplateTarget(record, hasRow(db, 'SELECT 1 FROM templates WHERE id = ?', target.id));
  }
}
