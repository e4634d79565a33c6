import type { Mutation } from '../port.ts';
import { checkOwnerMayChange, checkTreePlace, type TreePlace } from '../rules/collection-tree.ts';
import { checkDeletable, checkExpect, checkFree } from '../rules/expect.ts';
import type { CollectionRow } from './rows.ts';
import { hasRow, type Tx } from './transaction.ts';

type Put = Extract<Mutation, { kind: 'collection.put' }>;
type Draft = Put['record'];

/** The collection ?1 and all below it, with their level from 1. */
const SUBTREE = `
  WITH RECURSIVE tree (id, level) AS (
    SELECT id, 1 FROM collections WHERE id = ?1
    UNION ALL SELECT c.id, t.level + 1 FROM collections c JOIN tree t ON c.parent_id = t.id
  )`;

/** @throws ColonnadeError already_exists | not_found | precondition_failed | conflict (cycle, depth, owner) */
export function putCollection(tx: Tx, { expect, record, rule }: Put): void {
  const { db, tick } = tx;
  const found = db.get<CollectionRow>('SELECT * FROM collections WHERE id = ?', record.id);
  checkExpect('collection', found, expect);
  if (record.parentId !== undefined) checkTreePlace(record, findPlace(tx, record.id, record.parentId));
  const parent = record.parentId ?? null;
  if (found === undefined) {
    db.run(
      'INSERT INTO collections (id, name, parent_id, owner, tick) VALUES (?, ?, ?, ?, ?)',
      ...[record.id, record.name, parent, record.owner, tick],
    );
  } else {
    if (found.owner !== record.owner) changeOwner(tx, record);
    db.run(
      'UPDATE collections SET name = ?, parent_id = ?, tick = ? WHERE id = ?',
      ...[record.name, parent, tick, record.id],
    );
  }
  if (rule !== undefined) db.run('UPDATE collections SET rule = ? WHERE id = ?', rule, record.id);
  tx.change('collections');
}

/** @throws ColonnadeError not_found | precondition_failed */
export function setRule(tx: Tx, { id, expect, rule }: Extract<Mutation, { kind: 'collection.rule' }>): void {
  const { db, tick } = tx;
  checkExpect('collection', db.get<CollectionRow>('SELECT * FROM collections WHERE id = ?', id), expect);
  db.run('UPDATE collections SET rule = ?, tick = ? WHERE id = ?', rule ?? null, tick, id);
  tx.change('collections');
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while something hangs on it */
export function deleteCollection(
  tx: Tx,
  { id, expect }: Extract<Mutation, { kind: 'collection.delete' }>,
): void {
  const { db } = tx;
  checkDeletable(expect);
  checkExpect('collection', db.get<CollectionRow>('SELECT * FROM collections WHERE id = ?', id), expect);
  checkFree('collection', {
    children: hasRow(db, 'SELECT 1 FROM collections WHERE parent_id = ?', id),
    members: hasRow(db, 'SELECT 1 FROM minion_collections WHERE collection_id = ?', id),
    pillars: hasRow(db, "SELECT 1 FROM pillars WHERE tgt_type = 'collection' AND tgt_id = ?", id),
  });
  db.run('DELETE FROM collections WHERE id = ?', id);
  tx.change('collections');
}

function findPlace(tx: Tx, id: string, parentId: string): TreePlace {
  const isInSubtree = `${SUBTREE} SELECT 1 FROM tree WHERE id = ?2`;
  return {
    parent: tx.db.get<{ owner: string }>('SELECT owner FROM collections WHERE id = ?', parentId),
    isBelowItself: parentId === id || hasRow(tx.db, isInSubtree, id, parentId),
    parentLevel: levelOf(tx, parentId),
    height: heightOf(tx, id),
  };
}

/** 1 for a root collection. */
function levelOf({ db }: Pick<Tx, 'db'>, id: string): number {
  const row = db.get<{ level: number }>(
    `WITH RECURSIVE up (parent_id, level) AS (
       SELECT parent_id, 1 FROM collections WHERE id = ?
       UNION ALL SELECT c.parent_id, up.level + 1 FROM collections c JOIN up ON c.id = up.parent_id
     ) SELECT max(level) AS level FROM up`,
    id,
  );
  return row?.level ?? 0;
}

/** Levels of the collection with all below it; 1 when it is a leaf or new. */
function heightOf({ db }: Pick<Tx, 'db'>, id: string): number {
  return (
    db.get<{ height: number | null }>(`${SUBTREE} SELECT max(level) AS height FROM tree`, id)?.height ?? 1
  );
}

function changeOwner({ db, tick }: Tx, record: Draft): void {
  const pillars = `${SUBTREE} SELECT 1 FROM tree JOIN pillars p ON p.tgt_type = 'collection' AND p.tgt_id = tree.id LIMIT 1`;
  checkOwnerMayChange(hasRow(db, pillars, record.id));
  db.run(
    `${SUBTREE} UPDATE collections SET owner = ?2, tick = ?3 WHERE id IN (SELECT id FROM tree)`,
    ...[record.id, record.owner, tick],
  );
}
