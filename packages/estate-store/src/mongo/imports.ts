import type { ResolvedTarget } from '@colonnade/contracts';
import { type Document, Long, ObjectId } from 'mongodb';
import type { Clock } from '../port.ts';
import type { ImportWrites } from '../port-bulk.ts';
import type { PackedBatch, PackedMutation } from '../rules/batch.ts';
import {
  asImportError,
  checkAllStaged,
  estateChanged,
  type PackedChange,
  packChanges,
} from '../rules/import.ts';
import { refuseClosed } from '../rules/key-use.ts';
import { checkPidUnused } from '../rules/pillar-target.ts';
import { applyMutation, keepTick } from './apply-batch.ts';
import type { Connection } from './connection.ts';
import { fromPillar, toNumber } from './documents.ts';
import { brokenKey } from './errors.ts';
import { checkTarget } from './mutations-pillar.ts';
import { INDEX } from './schema.ts';
import { packStoredValue, readStoredValue, type StoredValue, unsetBeside } from './stored-value.ts';
import { flush, type Group, type Tx } from './transaction.ts';

/** Documents of one step of the switch, and of one deletion. */
const STEP = 500;

type Change = PackedChange<StoredValue>;
type Create = Extract<Change, { kind: 'pillar.create' }>;
type Update = Extract<Change, { kind: 'pillar.update' }>;

/** A staged change, or with `seq` 0 the import itself. Values stand in it as they will stand in the pillar. */
export type ImportDocument = {
  _id: ObjectId;
  import_id: string;
  seq: number;
  /** Of the import itself. */
  touched_at?: Date;
  staged?: number;
  change?: Document;
  /** The key the value of the change is sealed under. */
  kid?: string;
};

/** Adds documents to an import; the first ones make it. */
export async function stageImport(
  { tables, limit }: Pick<Connection, 'tables' | 'limit'>,
  id: string,
  changes: Parameters<ImportWrites['stageImport']>[1],
): Promise<void> {
  const packed = packChanges(changes, packStoredValue);
  const head = await tables.imports.findOneAndUpdate(
    { import_id: id, seq: 0 },
    { $set: { touched_at: new Date() }, $inc: { staged: packed.length } },
    { ...limit, upsert: true, returnDocument: 'after', hint: INDEX.importRow },
  );
  const first = toNumber(head?.staged ?? 0) - packed.length;
  const documents = packed.map((change, i) => ({
    ...{ _id: new ObjectId(), import_id: id, seq: first + i + 1 },
    change: toDocument(change),
    ...keyOf(change),
  }));
  if (documents.length > 0) await tables.imports.insertMany(documents, limit);
}

/** The switch: within one transaction, step by step, so that a process holds one step in memory. */
export async function applyImport(
  group: Group,
  id: string,
  batch: { changes: number } & Pick<PackedBatch<StoredValue>, 'by' | 'atMs' | 'events'>,
): Promise<Clock> {
  const { tables, within } = group;
  const head = await tables.imports.findOne({ import_id: id, seq: 0 }, { ...within, hint: INDEX.importRow });
  checkAllStaged(head === null ? -1 : toNumber(head.staged ?? 0), batch.changes);
  const closed = group.clock.closedKids;
  const barred = closed.length > 0 && { import_id: id, kid: { $in: [...closed] } };
  const found = barred && (await tables.imports.findOne(barred, { ...within, hint: INDEX.importRow }));
  if (found) refuseClosed([found.kid ?? ''], closed);
  return await keepTick(group, batch, async (tx) => {
    try {
      const seen = await moveAll(tx, id);
      checkAllStaged(seen, batch.changes);
    } catch (thrown) {
      throw asImportError(thrown);
    }
    await tables.imports.deleteOne({ import_id: id, seq: 0 }, { ...within, hint: INDEX.importRow });
  });
}

/** Twice over the staged changes: pillars come after whatever they may hang on. */
async function moveAll(tx: Tx, id: string): Promise<number> {
  let seen = 0;
  for await (const step of stepsOf(tx, id)) {
    seen += step.length;
    for (const change of step) {
      if (change.kind === 'pillar.create' || change.kind === 'pillar.update') continue;
      await applyMutation(tx, change as PackedMutation<StoredValue>);
    }
  }
  const targets = new Set<string>();
  for await (const step of stepsOf(tx, id)) {
    await createPillars(
      tx,
      step.filter((change) => change.kind === 'pillar.create'),
      targets,
    );
    await updatePillars(
      tx,
      step.filter((change) => change.kind === 'pillar.update'),
    );
    await flush(tx);
  }
  return seen;
}

async function* stepsOf({ tables, within }: Tx, id: string): AsyncGenerator<Change[]> {
  for (let after = 0; ; ) {
    const options = { ...within, hint: INDEX.importRow, sort: INDEX.importRow, limit: STEP } as const;
    const found = await tables.imports.find({ import_id: id, seq: { $gt: after } }, options).toArray();
    if (found.length > 0) yield found.map(({ change }) => fromDocument(change ?? {}));
    if (found.length < STEP) return;
    after = toNumber(found.at(-1)?.seq ?? after);
  }
}

async function createPillars(tx: Tx, creates: readonly Create[], targets: Set<string>): Promise<void> {
  if (creates.length === 0) return;
  const { tables, within, by, atMs, tick } = tx;
  const pids = creates.map(({ record }) => record.pid);
  checkPidUnused((await tables.versions.findOne({ pid: { $in: pids } }, within)) !== null);
  for (const { record } of creates) {
    const { tgtType, tgtId, pillarenv }: ResolvedTarget = record;
    const key = `${tgtType}:${tgtId}:${pillarenv}`;
    if (!targets.has(key)) await checkTarget(tx, { tgtType, tgtId, pillarenv }, { newSince: tick });
    targets.add(key);
    tx.change(`scope:${pillarenv}`);
  }
  const written = { createdBy: by, updatedBy: by, createdAtMs: atMs, updatedAtMs: atMs, tick };
  const documents = creates.map(({ record }) => fromPillar({ ...record, ...written }, record.value));
  try {
    await tables.pillars.insertMany(documents, within);
  } catch (thrown) {
    throw brokenKey(thrown) === undefined ? thrown : estateChanged();
  }
  for (const { _id, ...rest } of documents) {
    tx.appended.versions.push({ ...rest, op: 'create', purged: false } as never);
  }
}

async function updatePillars(tx: Tx, updates: readonly Update[]): Promise<void> {
  if (updates.length === 0) return;
  const { tables, within, by, atMs, tick } = tx;
  const now = { updated_by: by, updated_at: new Date(atMs), tick: Long.fromNumber(tick) };
  const operations = updates.map(({ pid, expectTick, value, isSecret }) => {
    const expected = expectTick === undefined ? {} : { tick: Long.fromNumber(expectTick) };
    const change = { $set: { ...value, is_secret: isSecret, ...now }, $unset: unsetBeside(value) };
    return { updateOne: { filter: { pid, ...expected }, update: change as object, hint: INDEX.pillarPid } };
  });
  const { matchedCount } = await tables.pillars.bulkWrite(operations, within);
  if (Number(matchedCount) !== updates.length) throw estateChanged();
  const pids = updates.map(({ pid }) => pid);
  const found = await tables.pillars
    .find({ pid: { $in: pids } }, { ...within, hint: INDEX.pillarPid })
    .toArray();
  const values = new Map(updates.map(({ pid, value }) => [pid, value]));
  for (const document of found) {
    const {
      _id,
      value: _value,
      value_json: _text,
      kid: _kid,
      ...rest
    } = document as typeof document & Document;
    const version = { ...rest, ...values.get(rest.pid), op: 'update', purged: false };
    tx.appended.versions.push(version as never);
    tx.change(`scope:${rest.pillarenv}`);
  }
}

function keyOf(change: Change): { kid?: string } {
  if (change.kind === 'pillar.create') return keyOfValue(change.record.value);
  return change.kind === 'pillar.update' ? keyOfValue(change.value) : {};
}

function keyOfValue({ kid }: StoredValue): { kid?: string } {
  return kid === undefined ? {} : { kid };
}

/** What holds no value of a pillar is kept as text: the driver knows no `undefined`. */
function toDocument(change: Change): Document {
  if (change.kind === 'pillar.create') return change;
  if (change.kind !== 'pillar.update') return { kind: change.kind, body: JSON.stringify(change) };
  const { expectTick, ...rest } = change;
  return expectTick === undefined ? rest : { ...rest, expectTick: Long.fromNumber(expectTick) };
}

function fromDocument(found: Document): Change {
  if (found.kind === 'pillar.create') {
    return { kind: found.kind, record: { ...found.record, value: restored(found.record.value) } };
  }
  if (found.kind !== 'pillar.update') return JSON.parse(found.body);
  const expectTick = found.expectTick === undefined ? undefined : toNumber(found.expectTick);
  return { ...(found as Update), expectTick, value: restored(found.value) };
}

/** What was read is not written as it is: the driver takes some keys of an object for its own. */
function restored(stored: StoredValue): StoredValue {
  return packStoredValue(readStoredValue(stored as Document));
}

/** Deletes the documents of an import, the import itself first. */
export async function dropImport(
  { tables, limit }: Pick<Connection, 'tables' | 'limit'>,
  id: string,
): Promise<void> {
  await tables.imports.deleteOne({ import_id: id, seq: 0 }, { ...limit, hint: INDEX.importRow });
  await tables.imports.deleteMany({ import_id: id }, { ...limit, hint: INDEX.importRow });
}

/** @returns how many were idle for so long */
export async function sweepImports(
  { tables, limit }: Pick<Connection, 'tables' | 'limit'>,
  idleMs: number,
): Promise<number> {
  const idle = { touched_at: { $lt: new Date(Date.now() - idleMs) } };
  const found = await tables.imports.find(idle, { ...limit, hint: INDEX.importTouched }).toArray();
  for (const { import_id } of found) await dropImport({ tables, limit }, import_id);
  return found.length;
}
