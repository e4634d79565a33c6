import { LIMITS } from '@colonnade/contracts';
import { Long } from 'mongodb';
import type { Mutation } from '../port.ts';
import { checkOwnerMayChange, checkTreePlace, type TreePlace } from '../rules/collection-tree.ts';
import { checkDeletable, checkExpect, checkFree } from '../rules/expect.ts';
import { fromCollection, toNumber } from './documents.ts';
import { hasAny } from './mutations-fleet.ts';
import { INDEX } from './schema.ts';
import type { Tx } from './transaction.ts';

type Put = Extract<Mutation, { kind: 'collection.put' }>;

/** @throws ColonnadeError already_exists | not_found | precondition_failed | conflict (cycle, depth, owner) */
export async function putCollection(tx: Tx, { expect, record, rule: asked }: Put): Promise<void> {
  const { tables, within } = tx;
  const found = await tables.collections.findOne({ _id: record.id }, within);
  checkExpect('collection', found === null ? undefined : { tick: toNumber(found.tick) }, expect);
  const levels = found === null ? [[record.id]] : await readSubtree(tx, record.id);
  const { parentId } = record;
  if (parentId !== undefined) checkTreePlace(record, await findPlace(tx, parentId, levels));
  if (found !== null && found.owner !== record.owner) await changeOwner(tx, levels.flat(), record.owner);
  const rule = asked === undefined ? found?.rule : asked;
  const ruled = rule === undefined || rule === null ? {} : { rule };
  const document = fromCollection({ ...record, ...ruled, tick: tx.tick });
  await tables.collections.replaceOne({ _id: record.id }, document, { ...within, upsert: true });
  tx.change('collections');
}

/** @throws ColonnadeError not_found | precondition_failed */
export async function setRule(
  tx: Tx,
  { id, expect, rule }: Extract<Mutation, { kind: 'collection.rule' }>,
): Promise<void> {
  const { tables, within } = tx;
  const found = await tables.collections.findOne({ _id: id }, within);
  checkExpect('collection', found === null ? undefined : { tick: toNumber(found.tick) }, expect);
  const tick = Long.fromNumber(tx.tick);
  const change =
    rule === undefined ? { $set: { tick }, $unset: { rule: '' as const } } : { $set: { tick, rule } };
  await tables.collections.updateOne({ _id: id }, change, within);
  tx.change('collections');
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while something hangs on it */
export async function deleteCollection(
  tx: Tx,
  { id, expect }: Extract<Mutation, { kind: 'collection.delete' }>,
): Promise<void> {
  const { tables, within } = tx;
  checkDeletable(expect);
  const found = await tables.collections.findOne({ _id: id }, within);
  checkExpect('collection', found === null ? undefined : { tick: toNumber(found.tick) }, expect);
  checkFree('collection', {
    children: await hasAny(tx, tables.collections, { parent_id: id }),
    members: await hasAny(tx, tables.minions, { collections: id }),
    pillars: await hasAny(tx, tables.pillars, { tgt_type: 'collection', tgt_id: id }, INDEX.pillarKey),
  });
  await tables.collections.deleteOne({ _id: id }, within);
  tx.change('collections');
}

/** The ids of a collection and of all below it, level by level; a tree has few levels. */
async function readSubtree({ tables, within }: Tx, id: string): Promise<string[][]> {
  const levels = [[id]];
  for (let below = [id]; levels.length <= LIMITS.collectionDepth; ) {
    const children = { parent_id: { $in: below } };
    const found = await tables.collections.find(children, { ...within, projection: { _id: 1 } }).toArray();
    if (found.length === 0) break;
    below = found.map(({ _id }) => _id);
    levels.push(below);
  }
  return levels;
}

async function findPlace(
  { tables, within }: Tx,
  parentId: string,
  levels: readonly (readonly string[])[],
): Promise<TreePlace> {
  const parent = await tables.collections.findOne({ _id: parentId }, within);
  let parentLevel = 0;
  for (let at = parent; at !== null && parentLevel <= LIMITS.collectionDepth; parentLevel++) {
    at = at.parent_id === null ? null : await tables.collections.findOne({ _id: at.parent_id }, within);
  }
  return {
    parent: parent ?? undefined,
    isBelowItself: levels.flat().includes(parentId),
    parentLevel,
    height: levels.length,
  };
}

async function changeOwner(tx: Tx, ids: readonly string[], owner: string): Promise<void> {
  const { tables, within } = tx;
  const pillars = { tgt_type: 'collection', tgt_id: { $in: [...ids] } };
  checkOwnerMayChange(await hasAny(tx, tables.pillars, pillars, INDEX.pillarKey));
  const set = { $set: { owner, tick: Long.fromNumber(tx.tick) } };
  await tables.collections.updateMany({ _id: { $in: [...ids] } }, set, within);
}
