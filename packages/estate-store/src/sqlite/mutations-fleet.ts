import { minionEnv } from '@colonnade/contracts';
import type { Mutation } from '../port.ts';
import { checkAdmin } from '../rules/admin.ts';
import { checkDeletable, checkExpect, checkFree } from '../rules/expect.ts';
import {
  checkMasterKnown,
  checkMembershipList,
  checkMembershipsKnown,
  checkRoomForMinion,
  joinMemberships,
  namedCollections,
} from '../rules/memberships.ts';
import type { Db } from './connection.ts';
import { acceptInventory } from './inventories.ts';
import { readMinion } from './reads.ts';
import { insertMemberships, type TokenRow, tokenColumns, toToken, WRITE_TOKEN, writeList } from './rows.ts';
import { hasRow, type Tx } from './transaction.ts';

type Of<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export function putMaster(tx: Tx, { expect, record }: Of<'master.put'>): void {
  checkExpect('master', tickOf(tx, 'SELECT tick FROM masters WHERE id = ?', record.id), expect);
  tx.db.run(
    `INSERT INTO masters (id, envs, token_ids, on_unknown_minion, tick) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET envs = excluded.envs, token_ids = excluded.token_ids,
       on_unknown_minion = excluded.on_unknown_minion, tick = excluded.tick`,
    ...[record.id, writeList(record.envs), writeList(record.tokenIds), record.onUnknownMinion, tx.tick],
  );
  tx.change(`master:${record.id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while it has minions or inventories */
export function deleteMaster(tx: Tx, { id, expect }: Of<'master.delete'>): void {
  checkDeletable(expect);
  checkExpect('master', tickOf(tx, 'SELECT tick FROM masters WHERE id = ?', id), expect);
  checkFree('master', {
    minions: hasRow(tx.db, 'SELECT 1 FROM minions WHERE master = ?', id),
    inventories: hasRow(tx.db, 'SELECT 1 FROM inventories WHERE master = ?', id),
  });
  tx.db.run('DELETE FROM masters WHERE id = ?', id);
  tx.change(`master:${id}`);
}

/** @throws ColonnadeError unknown_master | not_found | already_exists | precondition_failed | bad_request | forbidden */
export function putMinion(tx: Tx, { expect, record, maxOfMaster }: Of<'minion.put'>): void {
  const { db, tick } = tx;
  const { master, id, registeredBy } = record;
  checkMasterKnown(hasRow(db, 'SELECT 1 FROM masters WHERE id = ?', master));
  checkExpect(
    'minion',
    tickOf(tx, 'SELECT tick FROM minions WHERE master = ? AND id = ?', master, id),
    expect,
  );
  if (maxOfMaster !== undefined) {
    const count = db.get<{ n: number }>('SELECT count(*) AS n FROM minions WHERE master = ?', master)?.n ?? 0;
    checkRoomForMinion(count, maxOfMaster);
  }
  const found = readMinion(db, master, id);
  const memberships = checkedMemberships(db, record.collections, found?.byRule ?? []);
  db.run(
    `INSERT INTO minions (master, id, registered_by, tick) VALUES (?, ?, ?, ?)
     ON CONFLICT (master, id) DO UPDATE SET registered_by = excluded.registered_by, tick = excluded.tick`,
    ...[master, id, registeredBy, tick],
  );
  replaceMemberships(tx, { master, id, ...memberships });
  acceptInventory(tx, master, id);
  tx.change(`minion:${master}/${id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | bad_request */
export function setRuled(tx: Tx, { master, id, expect, collections }: Of<'minion.ruled'>): void {
  const { db, tick } = tx;
  const found = readMinion(db, master, id);
  checkExpect('minion', found, expect);
  const named = found === undefined ? [] : namedCollections(found);
  const memberships = checkedMemberships(db, named, collections);
  db.run('UPDATE minions SET tick = ? WHERE master = ? AND id = ?', tick, master, id);
  replaceMemberships(tx, { master, id, ...memberships });
  tx.change(`minion:${master}/${id}`);
}

function checkedMemberships(db: Db, named: readonly string[], byRule: readonly string[]) {
  checkMembershipList(named);
  checkMembershipList(byRule);
  const memberships = joinMemberships(named, byRule);
  checkMembershipList(memberships.collections);
  checkMembershipsKnown(named, (one) => hasRow(db, 'SELECT 1 FROM collections WHERE id = ?', one));
  checkMembershipsKnown(byRule, (one) => hasRow(db, 'SELECT 1 FROM collections WHERE id = ?', one));
  return memberships;
}

function replaceMemberships({ db }: Tx, minion: Parameters<typeof insertMemberships>[1]): void {
  db.run('DELETE FROM minion_collections WHERE master = ? AND minion_id = ?', minion.master, minion.id);
  insertMemberships(db, minion);
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while it has pillars */
export function deleteMinion(tx: Tx, { master, id, expect }: Of<'minion.delete'>): void {
  checkDeletable(expect);
  checkExpect(
    'minion',
    tickOf(tx, 'SELECT tick FROM minions WHERE master = ? AND id = ?', master, id),
    expect,
  );
  const pillars = 'SELECT 1 FROM pillars WHERE pillarenv = ?';
  checkFree('minion', { pillars: hasRow(tx.db, pillars, minionEnv(id, master)) });
  tx.db.run('DELETE FROM minions WHERE master = ? AND id = ?', master, id);
  tx.db.run('DELETE FROM inventories WHERE master = ? AND id = ?', master, id);
  tx.change(`minion:${master}/${id}`);
}

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export function putToken(tx: Tx, { expect, record }: Of<'token.put'>): void {
  checkExpect('token', tickOf(tx, 'SELECT tick FROM tokens WHERE id = ?', record.id), expect);
  tx.db.run(WRITE_TOKEN, ...tokenColumns({ ...record, tick: tx.tick }));
}

/** @throws ColonnadeError not_found | precondition_failed */
export function deleteToken(tx: Tx, { id, expect }: Of<'token.delete'>): void {
  checkDeletable(expect);
  checkExpect('token', tickOf(tx, 'SELECT tick FROM tokens WHERE id = ?', id), expect);
  tx.db.run('DELETE FROM tokens WHERE id = ?', id);
}

/** @throws ColonnadeError conflict: the token is gone, expired or no admin's */
export function requireAdmin({ db, atMs }: Tx, { id }: Of<'token.requireAdmin'>): void {
  const row = db.get<TokenRow>('SELECT * FROM tokens WHERE id = ?', id);
  checkAdmin(row && toToken(row), atMs);
}

function tickOf({ db }: Tx, sql: string, ...key: string[]): { tick: number } | undefined {
  return db.get<{ tick: number }>(sql, ...key);
}
