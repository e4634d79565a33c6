import { ColonnadeError, collectionEnv, minionEnv, parseEnv } from '@colonnade/contracts';
import type { Mutation } from '../port.ts';
import type { PillarCreate, PillarUpdate } from './protocol.ts';
import { PILLAR_FIELDS, type PillarRow } from './rows.ts';
import { checkExpect, hasRow, type Tx } from './transaction.ts';

/** @throws ColonnadeError conflict (pid used before) | already_exists | not_found | unknown_minion | bad_request */
export function createPillar(tx: Tx, { record }: PillarCreate): void {
  const { db, tick, by, atMs } = tx;
  if (isPidUsed(tx, record.pid)) throw new ColonnadeError('conflict', 'the pid was used before');
  checkTarget(tx, record);
  const { tgtType, tgtId, name, pillarenv } = record;
  const twin = 'SELECT 1 FROM pillars WHERE tgt_type = ? AND tgt_id = ? AND name = ? AND pillarenv = ?';
  if (hasRow(db, twin, tgtType, tgtId, name, pillarenv)) {
    throw new ColonnadeError('already_exists', 'the target has a pillar of this name');
  }
  db.run(
    `INSERT INTO pillars (${PILLAR_FIELDS}, tick) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[record.pid, tgtType, tgtId, name, pillarenv, record.value, record.isSecret ? 1 : 0],
    ...[by, by, atMs, atMs, tick],
  );
  copyVersion(tx, record.pid, 'create');
  tx.change(`scope:${pillarenv}`);
}

/** @throws ColonnadeError not_found | precondition_failed */
export function updatePillar(tx: Tx, { pid, expectTick, value, isSecret }: PillarUpdate): void {
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
function purgeVersions({ db, tick }: Tx, pid: string, which: string): void {
  db.run(`UPDATE pillar_versions SET value = 'null', purged = 1 WHERE pid = ? AND ${which}`, pid);
  db.run('UPDATE meta SET purge_tick = ?', tick);
}

type Found = Pick<PillarRow, 'pillarenv' | 'is_secret' | 'tick'>;

function findPillarRow(tx: Tx, pid: string, expectTick: number | undefined): Found {
  const row = tx.db.get<Found>('SELECT pillarenv, is_secret, tick FROM pillars WHERE pid = ?', pid);
  checkExpect('pillar', row, expectTick);
  return row as Found;
}

/** Every change leaves the full row as it was right after it (a delete: the last contents, and who deleted). */
function copyVersion(tx: Tx, pid: string, op: 'create' | 'update' | 'delete'): void {
  tx.db.run(
    `INSERT INTO pillar_versions (${PILLAR_FIELDS}, tick, op) SELECT ${PILLAR_FIELDS}, tick, ? FROM pillars WHERE pid = ?`,
    op,
    pid,
  );
}

/** A pid is its pillar's identity for ever; versions remember those that are gone. */
function isPidUsed({ db }: Tx, pid: string): boolean {
  return (
    hasRow(db, 'SELECT 1 FROM pillars WHERE pid = ?', pid) ||
    hasRow(db, 'SELECT 1 FROM pillar_versions WHERE pid = ?', pid)
  );
}

/**
 * A pillar of a collection or a minion needs its target in this very transaction: the caller resolved it before,
 * and meanwhile it may have been deleted or handed to another owner.
 */
function checkTarget(tx: Tx, { tgtType, tgtId, pillarenv }: PillarCreate['record']): void {
  if (tgtType === 'collection') {
    const row = tx.db.get<{ owner: string }>('SELECT owner FROM collections WHERE id = ?', tgtId);
    if (row === undefined) throw new ColonnadeError('not_found', 'no such collection', { field: 'tgtId' });
    if (pillarenv !== collectionEnv(tgtId, row.owner)) {
      throw new ColonnadeError('conflict', 'the pillarenv is not that of the collection and its owner');
    }
  }
  if (tgtType === 'minion') {
    const env = parseEnv(pillarenv);
    if (env.kind !== 'minion' || pillarenv !== minionEnv(tgtId, env.master)) {
      throw new ColonnadeError('bad_request', 'the pillarenv is not that of the minion', {
        field: 'pillarenv',
      });
    }
    if (!hasRow(tx.db, 'SELECT 1 FROM minions WHERE master = ? AND id = ?', env.master, tgtId)) {
      throw new ColonnadeError('unknown_minion', 'the master has no such minion', { field: 'tgtId' });
    }
  }
}
