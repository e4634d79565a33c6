import { type Document, Long } from 'mongodb';
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
import type { Tables } from './connection.ts';
import { minionKey, readText, toNumber } from './documents.ts';
import { INDEX } from './schema.ts';
import type { Tx } from './transaction.ts';

/** Inventories: their documents, the queries, the mutations. `accepted` is kept in step with the minions. */

/** `_id` is that of the minion; `facts` is canonical text: nobody searches in it. */
export type InventoryDocument = {
  _id: string;
  master: string;
  id: string;
  facts: string;
  received_by: string;
  received_at: Date;
  accepted: boolean;
  tick: Long;
};

export function toInventory(document: InventoryDocument): InventoryRecord {
  const { master, id, facts, received_by: receivedBy, received_at, accepted, tick } = document;
  const receivedAtMs = received_at.getTime();
  return { master, id, facts: readText(facts), receivedBy, receivedAtMs, accepted, tick: toNumber(tick) };
}

/** The facts come as the text they are kept as. */
export function fromInventory(record: Omit<InventoryRecord, 'facts'> & { facts: string }): InventoryDocument {
  const { master, id, facts, receivedBy, receivedAtMs, accepted, tick } = record;
  return {
    ...{ _id: minionKey(master, id), master, id, facts, received_by: receivedBy, accepted },
    ...{ received_at: new Date(receivedAtMs), tick: Long.fromNumber(tick) },
  };
}

export async function readInventory(tables: Tables, within: object, master: string, id: string) {
  const found = await tables.inventories.findOne({ _id: minionKey(master, id) }, within);
  return found === null ? undefined : toInventory(found);
}

export async function listInventories(
  tables: Tables,
  within: object,
  filter: InventoryFilter,
  page: Parameters<InventoryReads['listInventories']>[1],
): Promise<Page<InventoryRecord>> {
  checkLimit(page.limit);
  const { master, id } = readMinionCursor(page.after);
  const wanted: Document = {
    master: { $gte: master },
    $or: [{ master: { $gt: master } }, { master, id: { $gt: id } }],
  };
  if (filter.master !== undefined) wanted.master = { $gte: master, $eq: filter.master };
  if (filter.accepted !== undefined) wanted.accepted = filter.accepted;
  const hint = filter.accepted === undefined ? INDEX.minion : INDEX.inventoryState;
  const options = { ...within, hint, sort: { master: 1, id: 1 }, limit: page.limit + 1 } as const;
  const found = await tables.inventories.find(wanted, options).toArray();
  return cutPage(found.map(toInventory), page.limit, minionCursor);
}

/** @throws ColonnadeError unknown_master | already_exists | not_found | precondition_failed */
export async function putInventory(tx: Tx, { expect, record }: PackedInventoryPut): Promise<void> {
  const { tables, within, by, atMs, tick } = tx;
  const { master, id } = record;
  checkMasterKnown((await tables.masters.findOne({ _id: master }, within)) !== null);
  checkExpect('inventory', await readInventory(tables, within, master, id), expect);
  const minion = await tables.minions.findOne({ _id: minionKey(master, id) }, within);
  const received = { receivedBy: by, receivedAtMs: atMs, accepted: minion !== null, tick };
  const whole = fromInventory({ ...record, ...received });
  await tables.inventories.replaceOne({ _id: whole._id }, whole, { ...within, upsert: true });
}

/** @throws ColonnadeError not_found | precondition_failed | conflict once its minion is accepted */
export async function deleteInventory(
  { tables, within }: Tx,
  { master, id, expect }: Extract<InventoryMutation, { kind: 'inventory.delete' }>,
): Promise<void> {
  const found = await readInventory(tables, within, master, id);
  checkExpect('inventory', found, expect);
  checkFree('inventory', { 'an accepted minion': found?.accepted === true });
  await tables.inventories.deleteOne({ _id: minionKey(master, id) }, within);
}

/** With the registration of its minion. */
export async function acceptInventory(
  { tables, within, tick }: Tx,
  master: string,
  id: string,
): Promise<void> {
  const found = await tables.inventories.findOne({ _id: minionKey(master, id) }, within);
  if (found === null || found.accepted) return;
  const accepted = { ...found, accepted: true, tick: Long.fromNumber(tick) };
  await tables.inventories.replaceOne({ _id: found._id }, accepted, within);
}
