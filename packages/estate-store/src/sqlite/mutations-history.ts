import { ColonnadeError } from '@colonnade/contracts';
import type { Mutation } from '../port.ts';
import type { VersionOp } from '../port-history.ts';
import type { PillarMove, PillarRestore } from '../rules/batch.ts';
import { checkExpect, checkUnchanged } from '../rules/expect.ts';
import { checkPlace, copyVersion, findPillarRow, insertPillar, purgeVersions } from './mutations-pillar.ts';
import { hasRow, type Tx } from './transaction.ts';

type Of<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;

/** @throws ColonnadeError not_found | precondition_failed | already_exists | unknown_minion | conflict | bad_request */
export function movePillar(tx: Tx, { pid, expectTick, place, value }: PillarMove<string>): void {
  const isSecret = findPillarRow(tx, pid, expectTick).is_secret === 1;
  replacePillar(tx, { pid, ...place, value, isSecret }, expectTick, 'move');
}

/** @throws ColonnadeError not_found | precondition_failed | already_exists | unknown_minion | conflict | bad_request */
export function restorePillar(tx: Tx, { record, expectTick }: PillarRestore<string>): void {
  const { db } = tx;
  if (hasRow(db, 'SELECT 1 FROM pillars WHERE pid = ?', record.pid)) {
    replacePillar(tx, record, expectTick, 'restore');
    return;
  }
  const sql =
    'SELECT tick, created_by, created_at_ms FROM pillar_versions WHERE pid = ? ORDER BY tick DESC LIMIT 1';
  const last = db.get<{ tick: number; created_by: string; created_at_ms: number }>(sql, record.pid);
  checkExpect('pillar', last, expectTick);
  checkPlace(tx, record);
  insertPillar(tx, record, { by: last?.created_by ?? tx.by, atMs: last?.created_at_ms ?? tx.atMs });
  copyVersion(tx, record.pid, 'restore');
  tx.change(`scope:${record.pillarenv}`);
}

/** @throws ColonnadeError not_found when there never was such a pillar, or it was purged before | precondition_failed */
export function purgePillar(tx: Tx, { pid, expectTick }: Of<'pillar.purge'>): void {
  const { db } = tx;
  const sql = 'SELECT tick FROM pillar_versions WHERE pid = ? ORDER BY tick DESC LIMIT 1';
  checkExpect('pillar', db.get<{ tick: number }>(sql, pid), expectTick);
  const pillar = db.get<{ pillarenv: string }>('SELECT pillarenv FROM pillars WHERE pid = ?', pid);
  if (pillar !== undefined) {
    db.run('DELETE FROM pillars WHERE pid = ?', pid);
    tx.change(`scope:${pillar.pillarenv}`);
  }
  purgeVersions(tx, pid, '1');
  db.run('DELETE FROM pillar_versions WHERE pid = ?', pid);
}

/** @throws ColonnadeError precondition_failed */
export function requireUnchanged({ db }: Tx, { pillarenv, since }: Of<'scope.requireUnchanged'>): void {
  const meta = db.get<{ tick: number; changes_floor: number }>('SELECT tick, changes_floor FROM meta');
  if (meta === undefined) throw new ColonnadeError('unavailable', 'the estate has no clock');
  const isKnown = since >= meta.changes_floor && since < meta.tick;
  const changed = db.get(
    'SELECT 1 FROM changes WHERE tick > ? AND key = ? LIMIT 1',
    since,
    `scope:${pillarenv}`,
  );
  checkUnchanged(isKnown && changed === undefined);
}

/** A plain pillar that becomes a secret loses its plain history here too. */
function replacePillar(
  tx: Tx,
  record: PillarRestore<string>['record'],
  expectTick: number,
  op: VersionOp,
): void {
  const { pid, tgtType, tgtId, name, pillarenv, value, isSecret } = record;
  const before = findPillarRow(tx, pid, expectTick);
  checkPlace(tx, record);
  if (isSecret && before.is_secret === 0) purgeVersions(tx, pid, 'is_secret = 0');
  tx.db.run(
    `UPDATE pillars SET tgt_type = ?, tgt_id = ?, name = ?, pillarenv = ?, value = ?, is_secret = ?, updated_by = ?,
       updated_at_ms = ?, tick = ? WHERE pid = ?`,
    ...[tgtType, tgtId, name, pillarenv, value, isSecret ? 1 : 0, tx.by, tx.atMs, tx.tick, pid],
  );
  copyVersion(tx, pid, op);
  tx.change(`scope:${before.pillarenv}`);
  tx.change(`scope:${pillarenv}`);
}
