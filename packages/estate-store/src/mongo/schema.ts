import { ColonnadeError } from '@colonnade/contracts';
import type { Collection, CreateIndexesOptions, Db, Document, IndexSpecification } from 'mongodb';
import { kidOf } from '../rules/key-use.ts';
import { masterOf } from '../rules/pillar-target.ts';
import { TABLE_NAMES, type Tables } from './connection.ts';
import { OTHER_INDEX } from './errors.ts';
import { readStoredValue } from './stored-value.ts';

type Keys = Record<string, 1>;

/**
 * The indexes. A query by more than one equality or list names its index by these keys as a hint: when that is
 * missing, the query fails and does not read a whole collection instead.
 */
export const INDEX = {
  id: { _id: 1 },
  /** Seed 000: what makes a pillar unique. */
  pillarKey: { tgt_type: 1, tgt_id: 1, name: 1, pillarenv: 1 },
  pillarPid: { pid: 1 },
  pillarEnv: { pillarenv: 1, name: 1, pid: 1 },
  pillarName: { name: 1, pid: 1 },
  version: { pid: 1, tick: 1 },
  versionEnv: { pillarenv: 1, pid: 1, tick: 1 },
  pillarMaster: { of_master: 1, pid: 1 },
  collectionParent: { parent_id: 1 },
  minion: { master: 1, id: 1 },
  minionCollections: { collections: 1, master: 1, id: 1 },
  change: { tick: 1 },
  outbox: { tick: 1, index: 1 },
  answerExpiry: { expires_at: 1 },
  writerSeen: { seen_at: 1 },
  taskTemplate: { template_id: 1, state: 1, _id: 1 },
  taskState: { state: 1, _id: 1 },
  importRow: { import_id: 1, seq: 1 },
  importTouched: { touched_at: 1 },
  inventoryState: { accepted: 1, master: 1, id: 1 },
  sealed: { is_secret: 1, kid: 1, pid: 1, tick: 1 },
  importKid: { kid: 1 },
} as const satisfies Record<string, Keys>;

/** Sessions of writers that were not closed are forgotten after this; a living writer renews its own. */
const WRITER_KEPT_S = 24 * 60 * 60;

type IndexPlan = { table: keyof Tables; keys: Keys; options?: CreateIndexesOptions };

const FIRST_INDEXES: readonly IndexPlan[] = [
  { table: 'pillars', keys: INDEX.pillarKey, options: { unique: true } },
  // Sparse: pillars another program wrote have no pid until they are adopted.
  { table: 'pillars', keys: INDEX.pillarPid, options: { unique: true, sparse: true } },
  { table: 'pillars', keys: INDEX.pillarEnv },
  { table: 'pillars', keys: INDEX.pillarName },
  { table: 'versions', keys: INDEX.version, options: { unique: true } },
  { table: 'collections', keys: INDEX.collectionParent },
  { table: 'minions', keys: INDEX.minion, options: { unique: true } },
  { table: 'minions', keys: INDEX.minionCollections },
  { table: 'changes', keys: INDEX.change, options: { unique: true } },
  { table: 'outbox', keys: INDEX.outbox, options: { unique: true } },
  { table: 'answers', keys: INDEX.answerExpiry, options: { expireAfterSeconds: 0 } },
  { table: 'writers', keys: INDEX.writerSeen, options: { expireAfterSeconds: WRITER_KEPT_S } },
];

const TASK_INDEXES: readonly IndexPlan[] = [
  { table: 'tasks', keys: INDEX.taskTemplate },
  { table: 'tasks', keys: INDEX.taskState },
];

const IMPORT_INDEXES: readonly IndexPlan[] = [
  { table: 'imports', keys: INDEX.importRow, options: { unique: true } },
  { table: 'imports', keys: INDEX.importTouched, options: { sparse: true } },
];

const INVENTORY_INDEXES: readonly IndexPlan[] = [
  { table: 'inventories', keys: INDEX.minion, options: { unique: true } },
  { table: 'inventories', keys: INDEX.inventoryState },
];

/** Documents that get a new field at once. */
const BACKFILL_CHUNK = 500;

/** `kid` of a secret that is sealed under none. */
export const NO_KID = '';

/**
 * The migrations: entry i brings the schema from version i to i + 1. Each may be run again after it was cut short.
 * Entries are never changed once released; a new need is a new entry.
 */
export const MIGRATIONS: readonly ((db: Db) => Promise<void>)[] = [
  async (db) => {
    for (const table of Object.keys(TABLE_NAMES) as (keyof Tables)[]) await ensureCollection(db, table);
    for (const plan of FIRST_INDEXES) await ensureIndex(db, plan);
  },
  async (db) => {
    for (const table of ['templates', 'tasks'] as const) await ensureCollection(db, table);
    for (const plan of TASK_INDEXES) await ensureIndex(db, plan);
  },
  async (db) => {
    await ensureCollection(db, 'imports');
    for (const plan of IMPORT_INDEXES) await ensureIndex(db, plan);
  },
  async (db) => {
    await ensureCollection(db, 'inventories');
    for (const plan of INVENTORY_INDEXES) await ensureIndex(db, plan);
  },
  async (db) => {
    await ensureIndex(db, { table: 'versions', keys: INDEX.versionEnv });
    await ensureIndex(db, { table: 'pillars', keys: INDEX.pillarMaster, options: { sparse: true } });
    await fillInMasters(db);
  },
  async (db) => {
    for (const table of ['pillars', 'versions'] as const) {
      await ensureIndex(db, { table, keys: INDEX.sealed });
      await fillInKids(db.collection(TABLE_NAMES[table], { promoteValues: false }));
    }
    await ensureIndex(db, { table: 'imports', keys: INDEX.importKid, options: { sparse: true } });
  },
  (db) => ensureCollection(db, 'services'),
];

/** The schema this program reads and writes. */
export const SCHEMA_VERSION = MIGRATIONS.length;

/**
 * `kid` of secrets that were written without one: before there was such a field, or by another program. What is purged, or
 * was never sealed, has none and says so.
 */
export async function fillInKids(table: Collection<Document>, limit: object = {}): Promise<void> {
  for (;;) {
    const options = { ...limit, hint: INDEX.sealed, limit: BACKFILL_CHUNK } as const;
    const found = await table.find({ is_secret: true, kid: null }, options).toArray();
    const updates = found.map((document) => {
      const kid = kidOf(readStoredValue(document as Document)) ?? NO_KID;
      return { updateOne: { filter: { _id: document._id, kid: null }, update: { $set: { kid } } } };
    });
    if (updates.length > 0) await table.bulkWrite(updates, limit);
    if (found.length < BACKFILL_CHUNK) return;
  }
}

/** `of_master` of pillars that were written before there was such a field; those nobody adopted have no pid. */
async function fillInMasters(db: Db): Promise<void> {
  const pillars = db.collection(TABLE_NAMES.pillars);
  let after = '';
  for (;;) {
    const found = await pillars
      .find({ pid: { $gt: after } }, { hint: INDEX.pillarPid, sort: { pid: 1 }, limit: BACKFILL_CHUNK })
      .toArray();
    const updates = found.flatMap(({ _id, tgt_type, tgt_id, pillarenv }) => {
      const master = masterOf(tgt_type, tgt_id, pillarenv);
      return master === undefined
        ? []
        : [{ updateOne: { filter: { _id }, update: { $set: { of_master: master } } } }];
    });
    if (updates.length > 0) await pillars.bulkWrite(updates);
    if (found.length < BACKFILL_CHUNK) return;
    after = String(found.at(-1)?.pid);
  }
}

async function ensureCollection(db: Db, table: keyof Tables): Promise<void> {
  const name = TABLE_NAMES[table];
  const isThere = await db.listCollections({ name }, { nameOnly: true }).hasNext();
  if (!isThere) await db.createCollection(name).catch(unlessThere);
}

function unlessThere(thrown: { code?: unknown }): void {
  const NAMESPACE_EXISTS = 48;
  if (thrown.code !== NAMESPACE_EXISTS) throw thrown;
}

/** What makes an index leave documents out, or find others. */
type FoundIndex = Pick<CreateIndexesOptions, 'unique' | 'sparse' | 'hidden'> &
  Pick<CreateIndexesOptions, 'partialFilterExpression' | 'collation'> & { key: object };

/**
 * Another program may have made the same index under a name of its own; then that one serves. Two of the same keys would make
 * our hints ambiguous.
 * @throws ColonnadeError `misconfigured` for one that leaves documents out
 */
async function ensureIndex(db: Db, { table, keys, options = {} }: IndexPlan): Promise<void> {
  const collection = db.collection(TABLE_NAMES[table]);
  const all = (await collection.indexes()) as unknown as FoundIndex[];
  const found = all.find((index) => JSON.stringify(index.key) === JSON.stringify(keys));
  if (found === undefined) await collection.createIndex(keys as IndexSpecification, options);
  else if (!isSame(found, options)) throw new ColonnadeError('misconfigured', OTHER_INDEX);
}

function isSame(found: FoundIndex, options: CreateIndexesOptions): boolean {
  const isPlain = [found.partialFilterExpression, found.collation].every((one) => one === undefined);
  const [unique, sparse] = [found.unique === true, found.sparse === true];
  return (
    isPlain &&
    found.hidden !== true &&
    unique === (options.unique ?? false) &&
    sparse === (options.sparse ?? false)
  );
}
