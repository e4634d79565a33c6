import { minionEnv } from '@colonnade/contracts';
import type { Collection, Document, Long } from 'mongodb';
import type { Expect, Mutation } from '../port.ts';
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
import { fromMaster, fromMinion, fromToken, minionKey, toMinion, toNumber, toToken } from './documents.ts';
import { acceptInventory } from './inventories.ts';
import { INDEX } from './schema.ts';
import type { Tx } from './transaction.ts';

type Of<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export async function putMaster(tx: Tx, { expect, record }: Of<'master.put'>): Promise<void> {
  await checkExpected(tx, tx.tables.masters, 'master', record.id, expect);
  await put(tx, tx.tables.masters, fromMaster({ ...record, tick: tx.tick }));
  tx.change(`master:${record.id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while it has minions or inventories */
export async function deleteMaster(tx: Tx, { id, expect }: Of<'master.delete'>): Promise<void> {
  checkDeletable(expect);
  await checkExpected(tx, tx.tables.masters, 'master', id, expect);
  checkFree('master', {
    minions: await hasAny(tx, tx.tables.minions, { master: id }),
    inventories: await hasAny(tx, tx.tables.inventories, { master: id }, INDEX.minion),
  });
  await tx.tables.masters.deleteOne({ _id: id }, tx.within);
  tx.change(`master:${id}`);
}

/** @throws ColonnadeError unknown_master | not_found | already_exists | precondition_failed | bad_request | forbidden */
export async function putMinion(tx: Tx, { expect, record, maxOfMaster }: Of<'minion.put'>): Promise<void> {
  const { tables, within } = tx;
  const { master, id } = record;
  checkMasterKnown(await hasAny(tx, tables.masters, { _id: master }));
  await checkExpected(tx, tables.minions, 'minion', minionKey(master, id), expect);
  if (maxOfMaster !== undefined) {
    const options = { ...within, hint: INDEX.minion, limit: maxOfMaster };
    checkRoomForMinion(await tables.minions.countDocuments({ master }, options), maxOfMaster);
  }
  const found = await tables.minions.findOne({ _id: minionKey(master, id) }, within);
  const memberships = await checkedMemberships(tx, record.collections, found?.by_rule ?? []);
  await put(tx, tables.minions, fromMinion({ ...record, ...memberships, tick: tx.tick }));
  await acceptInventory(tx, master, id);
  tx.change(`minion:${master}/${id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | bad_request */
export async function setRuled(
  tx: Tx,
  { master, id, expect, collections }: Of<'minion.ruled'>,
): Promise<void> {
  const { tables, within } = tx;
  const document = await tables.minions.findOne({ _id: minionKey(master, id) }, within);
  const found = document === null ? undefined : toMinion(document);
  checkExpect('minion', found, expect);
  if (found === undefined) return;
  const memberships = await checkedMemberships(tx, namedCollections(found), collections);
  const { byRule: _, ...rest } = found;
  await put(tx, tables.minions, fromMinion({ ...rest, ...memberships, tick: tx.tick }));
  tx.change(`minion:${master}/${id}`);
}

async function checkedMemberships(
  { tables, within }: Tx,
  named: readonly string[],
  byRule: readonly string[],
) {
  checkMembershipList(named);
  checkMembershipList(byRule);
  const memberships = joinMemberships(named, byRule);
  checkMembershipList(memberships.collections);
  if (memberships.collections.length === 0) return memberships;
  const wanted = { _id: { $in: [...named, ...byRule] } };
  const found = await tables.collections.find(wanted, within).toArray();
  const known = new Set(found.map(({ _id }) => _id));
  checkMembershipsKnown(named, (one) => known.has(one));
  checkMembershipsKnown(byRule, (one) => known.has(one));
  return memberships;
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while it has pillars */
export async function deleteMinion(tx: Tx, { master, id, expect }: Of<'minion.delete'>): Promise<void> {
  const { tables } = tx;
  checkDeletable(expect);
  await checkExpected(tx, tables.minions, 'minion', minionKey(master, id), expect);
  const ofMinion = { pillarenv: minionEnv(id, master) };
  checkFree('minion', { pillars: await hasAny(tx, tables.pillars, ofMinion) });
  await tables.minions.deleteOne({ _id: minionKey(master, id) }, tx.within);
  await tables.inventories.deleteOne({ _id: minionKey(master, id) }, tx.within);
  tx.change(`minion:${master}/${id}`);
}

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export async function putToken(tx: Tx, { expect, record }: Of<'token.put'>): Promise<void> {
  await checkExpected(tx, tx.tables.tokens, 'token', record.id, expect);
  await put(tx, tx.tables.tokens, fromToken({ ...record, tick: tx.tick }));
}

/** @throws ColonnadeError not_found | precondition_failed */
export async function deleteToken(tx: Tx, { id, expect }: Of<'token.delete'>): Promise<void> {
  checkDeletable(expect);
  await checkExpected(tx, tx.tables.tokens, 'token', id, expect);
  await tx.tables.tokens.deleteOne({ _id: id }, tx.within);
}

/** @throws ColonnadeError conflict: the token is gone, expired or no admin's */
export async function requireAdmin(tx: Tx, { id }: Of<'token.requireAdmin'>): Promise<void> {
  const found = await tx.tables.tokens.findOne({ _id: id }, tx.within);
  checkAdmin(found === null ? undefined : toToken(found), tx.atMs);
}

type Keyed = Document & { _id: string };

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export async function checkExpected<T extends Keyed>(
  { within }: Tx,
  table: Collection<T>,
  what: string,
  id: string,
  expect: Expect,
): Promise<void> {
  const found = (await table.findOne({ _id: id } as never, within)) as { tick: Long } | null;
  checkExpect(what, found === null ? undefined : { tick: toNumber(found.tick) }, expect);
}

/** Writes a whole document. */
export async function put<T extends Keyed>({ within }: Tx, table: Collection<T>, document: T): Promise<void> {
  await table.replaceOne({ _id: document._id } as never, document as never, { ...within, upsert: true });
}

/** Whether a collection holds a document of this kind. */
export async function hasAny<T extends Document>(
  { within }: Tx,
  table: Collection<T>,
  filter: object,
  hint?: Readonly<Record<string, 1>>,
): Promise<boolean> {
  const options = { ...within, ...(hint === undefined ? {} : { hint }), projection: { _id: 1 } };
  return (await table.findOne(filter, options)) !== null;
}
