import { canonicalText } from '@colonnade/value';
import type { Page } from '../port.ts';
import type {
  InventoryFilter,
  InventoryMutation,
  InventoryReads,
  InventoryRecord,
} from '../port-inventories.ts';
import type { PackedInventoryPut } from '../rules/batch.ts';
import { checkExpect, checkFree } from '../rules/expect.ts';
import { checkMasterKnown } from '../rules/memberships.ts';
import { checkLimit, cutPage, minionCursor, readMinionCursor } from '../rules/page.ts';
import type { TableIo } from './archive.ts';
import type { Db } from './connection.ts';
import { readValue } from './rows.ts';
import { hasRow, type Tx } from './transaction.ts';

/** Inventories: their rows, the queries, the mutations. `accepted` is kept in step with the minions. */

export type InventoryRow = {
  master: string;
  id: string;
  facts: string;
  received_by: string;
  received_at_ms: number;
  accepted: number;
  tick: number;
};

function toInventory(row: InventoryRow): InventoryRecord {
  const { master, id, facts, received_by: receivedBy, received_at_ms: receivedAtMs, tick } = row;
  return {
    master,
    id,
    facts: readValue(facts),
    receivedBy,
    receivedAtMs,
    accepted: row.accepted === 1,
    tick,
  };
}

export function readInventory(db: Db, master: string, id: string): InventoryRecord | undefined {
  const row = db.get<InventoryRow>('SELECT * FROM inventories WHERE master = ? AND id = ?', master, id);
  return row && toInventory(row);
}

export function listInventories(
  db: Db,
  { master, accepted }: InventoryFilter,
  page: Parameters<InventoryReads['listInventories']>[1],
): Page<InventoryRecord> {
  checkLimit(page.limit);
  const after = readMinionCursor(page.after);
  const conditions = ['(master, id) > (?, ?)'];
  const params: (string | number)[] = [after.master, after.id];
  if (master !== undefined) {
    conditions.push('master = ?');
    params.push(master);
  }
  if (accepted !== undefined) {
    conditions.push('accepted = ?');
    params.push(accepted ? 1 : 0);
  }
  const sql = `SELECT * FROM inventories WHERE ${conditions.join(' AND ')} ORDER BY master, id LIMIT ?`;
  const found = db.all<InventoryRow>(sql, ...params, page.limit + 1).map(toInventory);
  return cutPage(found, page.limit, minionCursor);
}

/** @throws ColonnadeError unknown_master | already_exists | not_found | precondition_failed */
export function putInventory({ db, by, atMs, tick }: Tx, { expect, record }: PackedInventoryPut): void {
  const { master, id, facts } = record;
  checkMasterKnown(hasRow(db, 'SELECT 1 FROM masters WHERE id = ?', master));
  checkExpect('inventory', readInventory(db, master, id), expect);
  const accepted = hasRow(db, 'SELECT 1 FROM minions WHERE master = ? AND id = ?', master, id);
  db.run(WRITE, master, id, facts, by, atMs, accepted ? 1 : 0, tick);
}

const WRITE = `INSERT OR REPLACE INTO inventories
  (master, id, facts, received_by, received_at_ms, accepted, tick) VALUES (?, ?, ?, ?, ?, ?, ?)`;

/** @throws ColonnadeError not_found | precondition_failed | conflict once its minion is accepted */
export function deleteInventory(
  { db }: Tx,
  { master, id, expect }: Extract<InventoryMutation, { kind: 'inventory.delete' }>,
): void {
  const found = readInventory(db, master, id);
  checkExpect('inventory', found, expect);
  checkFree('inventory', { 'an accepted minion': found?.accepted === true });
  db.run('DELETE FROM inventories WHERE master = ? AND id = ?', master, id);
}

/** With the registration of its minion. */
export function acceptInventory({ db, tick }: Tx, master: string, id: string): void {
  db.run(
    'UPDATE inventories SET accepted = 1, tick = ? WHERE master = ? AND id = ? AND accepted = 0',
    ...[tick, master, id],
  );
}

/** An inventory of an estate file that is read or filled whole; see `archive.ts`. */
export const INVENTORY_IO: TableIo<InventoryRecord> = {
  select: {
    sql: 'SELECT * FROM inventories WHERE (master, id) > (?, ?) ORDER BY master, id',
    first: ['', ''],
    keyOf: (row) => [row.master, row.id],
  },
  toRow: toInventory,
  insert: (db, { master, id, facts, receivedBy, receivedAtMs, accepted, tick }) =>
    db.run(WRITE, master, id, canonicalText(facts), receivedBy, receivedAtMs, accepted ? 1 : 0, tick),
};
