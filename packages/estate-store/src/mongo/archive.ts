import { randomUUID } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText } from '@colonnade/value';
import { type ClientSession, type Collection, type Document, Long, ObjectId } from 'mongodb';
import {
  ARCHIVE_CHUNK,
  type ArchiveMarks,
  type ArchiveRows,
  type ArchiveSource,
  type ArchiveTable,
  type ArchiveTarget,
  type ReadRows,
} from '../copy/archive.ts';
import { readNewestClock } from './clock.ts';
import { type ClockDocument, type Connection, openConnection, type Tables } from './connection.ts';
import * as documents from './documents.ts';
import { toMongoStoreError } from './errors.ts';
import { fromInventory, toInventory } from './inventories.ts';
import { readClosedKids, readRewrap, writeRewrap } from './key-use.ts';
import { acquireMigrationLock, MIGRATION_LOCK } from './migration-lock.ts';
import type { MongoOptions } from './options.ts';
import { readHistoryFloor } from './reads.ts';
import { INDEX, MIGRATIONS, SCHEMA_VERSION } from './schema.ts';
import { fromService, toService } from './services.ts';
import { packStoredValue } from './stored-value.ts';
import * as tasks from './task-documents.ts';
import { TRANSACTION } from './transaction.ts';

/** An estate in MongoDB read whole, or filled whole. Needs the right to read and write the whole database. */

type TableIo<R> = {
  table: keyof Tables;
  /** The order of the rows, and the index that has it. */
  key: Readonly<Record<string, 1>>;
  filter?: Document;
  toRow: (found: never) => R;
  toDocument: (row: R) => Document;
};

const IO: { readonly [T in ArchiveTable]: TableIo<ArchiveRows[T]> } = {
  collections: byId('collections', documents.toCollection, documents.fromCollection),
  masters: byId('masters', documents.toMaster, documents.fromMaster),
  minions: {
    table: 'minions',
    key: INDEX.minion,
    toRow: documents.toMinion,
    toDocument: documents.fromMinion,
  },
  tokens: byId('tokens', documents.toToken, documents.fromToken),
  pillars: {
    table: 'pillars',
    key: INDEX.pillarPid,
    filter: { pid: { $gt: '' } },
    toRow: documents.toPillar,
    toDocument: (row) => documents.fromPillar(row, packStoredValue(row.value)),
  },
  versions: {
    table: 'versions',
    key: INDEX.version,
    toRow: documents.toVersion,
    toDocument: ({ op, purged, ...row }) => ({
      ...{ ...documents.fromPillar(row, packStoredValue(row.value)), op, purged },
    }),
  },
  outbox: {
    table: 'outbox',
    key: INDEX.outbox,
    toRow: documents.toOutboxRow,
    toDocument: ({ tick, index, timeMs, type, subject, data }) => ({
      ...{ _id: new ObjectId(), tick: Long.fromNumber(tick), index, time: new Date(timeMs) },
      ...{ type, subject, data: canonicalText(data) },
    }),
  },
  answers: byId(
    'answers',
    ({ _id: scope, fingerprint, response, tick, expires_at }: documents.AnswerDocument) => ({
      ...{ scope, fingerprint, response: documents.readText(response) },
      ...{ tick: documents.toNumber(tick), expiresAtMs: expires_at.getTime() },
    }),
    ({ scope, fingerprint, response, tick, expiresAtMs }) => ({
      ...{ _id: scope, fingerprint, response: canonicalText(response) },
      ...{ tick: Long.fromNumber(tick), expires_at: new Date(expiresAtMs) },
    }),
  ),
  fences: {
    ...byId(
      'leases',
      ({ _id: name, fence }: documents.LeaseDocument) => ({ name, fence }),
      ({ name, fence }) => ({ _id: name, holder: '', fence, expires_at: new Date(0) }),
    ),
    filter: { _id: { $ne: MIGRATION_LOCK } },
  },
  templates: byId('templates', tasks.toTemplate, ({ schema, ...row }) =>
    tasks.fromTemplate({ ...row, schema: canonicalText(schema) }),
  ),
  tasks: byId('tasks', tasks.toTask, tasks.fromTask),
  inventories: {
    table: 'inventories',
    key: INDEX.minion,
    toRow: toInventory,
    toDocument: ({ facts, ...row }) => fromInventory({ ...row, facts: canonicalText(facts) }),
  },
  services: byId('services', toService, ({ types, ...row }) =>
    fromService({ ...row, types: canonicalText(types) }),
  ),
};

function byId<R, D>(
  table: keyof Tables,
  toRow: (found: D) => R,
  toDocument: (row: R) => Document,
): TableIo<R> {
  return { table, key: INDEX.id, toRow: toRow as (found: never) => R, toDocument };
}

/** @throws ColonnadeError conflict (pillars nobody adopted) | unavailable | misconfigured */
export async function openMongoSource(options: MongoOptions): Promise<ArchiveSource> {
  const connection = openConnection(options);
  try {
    await connection.use(() => checkAdopted(connection));
  } catch (thrown) {
    await connection[Symbol.asyncDispose]();
    throw thrown;
  }
  return {
    readClock: () =>
      connection.use(async () => {
        const { incarnation, tick } = await readNewestClock(connection);
        return { incarnation, tick };
      }),
    readMarks: () => connection.use(() => readMarks(connection)),
    readRows: createReadRows(connection),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

/**
 * Until it is finished, the database carries a mark and no clock: nobody takes it for an estate. A copy that was cut
 * short is begun again from nothing.
 * @throws ColonnadeError conflict (not empty, or another process at work) | unavailable | misconfigured
 */
export async function openMongoTarget(options: MongoOptions): Promise<ArchiveTarget> {
  const connection = openConnection(options);
  let lock: AsyncDisposable | undefined;
  const dispose = async () => {
    await lock?.[Symbol.asyncDispose]();
    await connection[Symbol.asyncDispose]();
  };
  try {
    await connection.use(async () => {
      lock = await acquireMigrationLock(connection);
      if (lock === undefined) {
        throw new ColonnadeError(
          'conflict',
          'another process makes or fills an estate in this database; one that was killed lets go of it within 30 seconds',
        );
      }
      for (const step of MIGRATIONS) await step(connection.db);
      await begin(connection);
    });
  } catch (thrown) {
    await dispose();
    throw thrown;
  }
  return {
    async append(table, rows) {
      const { table: name, toDocument } = IO[table];
      const collection = connection.tables[name] as unknown as Collection<Document>;
      await connection.use(() => collection.insertMany(rows.map(toDocument)));
    },
    readRows: createReadRows(connection),
    finish: (tick, marks) => connection.use(() => finish(connection, tick, marks)),
    [Symbol.asyncDispose]: dispose,
  };
}

function createReadRows({ tables, use }: Connection): ReadRows {
  return async function* <T extends ArchiveTable>(table: T) {
    const { table: name, key, filter = {}, toRow } = IO[table];
    const collection = tables[name] as unknown as Collection<Document>;
    const cursor = collection.find(filter, { hint: key, sort: key, batchSize: ARCHIVE_CHUNK });
    try {
      while (await use(() => cursor.hasNext())) {
        const found = cursor.readBufferedDocuments() as never[];
        yield await use(async () => found.map(toRow));
      }
    } finally {
      await cursor.close().catch((thrown: unknown) => Promise.reject(toMongoStoreError(thrown)));
    }
  };
}

async function checkAdopted(connection: Connection): Promise<void> {
  const { tables, limit } = connection;
  // Where there is none, there are no indexes to count by.
  await readNewestClock(connection);
  const all = await tables.pillars.countDocuments({}, { hint: INDEX.id, ...limit });
  const adopted = await tables.pillars.countDocuments(
    { pid: { $gt: '' } },
    { hint: INDEX.pillarPid, ...limit },
  );
  // Where numbers keep their kinds, the driver counts in them too.
  if (Number(all) === Number(adopted)) return;
  throw new ColonnadeError('conflict', 'another program has written pillars: adopt them before a copy');
}

async function begin(connection: Connection): Promise<void> {
  const { tables, limit } = connection;
  const { writers: _writers, meta, ...holding } = tables;
  const collections = Object.values(holding) as unknown as Collection<Document>[];
  const content = { _id: { $ne: MIGRATION_LOCK } } as object;
  if ((await meta.findOne({ _id: 'copy' }, limit)) !== null) {
    for (const collection of collections) await collection.deleteMany(content, { hint: INDEX.id });
    return;
  }
  await inTransaction(connection, async (session) => {
    const clock = (await meta.findOne({ _id: 'clock' }, { session })) as ClockDocument | null;
    let isEmpty = clock === null || documents.toNumber(clock.tick) === 0;
    for (const collection of collections) {
      isEmpty &&= (await collection.findOne(content, { session, hint: INDEX.id })) === null;
    }
    if (!isEmpty) throw new ColonnadeError('conflict', 'the place to copy into holds an estate already');
    await meta.deleteOne({ _id: 'clock' }, { session });
    await meta.insertOne({ _id: 'copy', started_at: new Date() }, { session });
  });
}

async function readMarks({ tables, limit }: Connection): Promise<ArchiveMarks> {
  return {
    historyFloor: await readHistoryFloor(tables, limit),
    closedKids: await readClosedKids(tables, limit),
    rewrap: await readRewrap(tables, limit),
  };
}

async function finish(
  connection: Connection,
  tick: number,
  { historyFloor, closedKids, rewrap }: ArchiveMarks,
) {
  const { meta } = connection.tables;
  const incarnation = randomUUID();
  const at = { tick: Long.fromNumber(tick), changes_floor: Long.fromNumber(tick), closed_kids: closedKids };
  await inTransaction(connection, async (session) => {
    await meta.insertOne({ _id: 'clock', schema_version: SCHEMA_VERSION, incarnation, ...at }, { session });
    await meta.deleteOne({ _id: 'copy' }, { session });
    const { tick: floor, atMs } = historyFloor;
    const known = { $set: { floor: Long.fromNumber(floor), floor_at: new Date(atMs) } };
    await meta.updateOne({ _id: 'history' }, known, { session, upsert: true });
    if (rewrap !== undefined) await writeRewrap(connection.tables, { session }, rewrap);
  });
  return { incarnation, tick };
}

function inTransaction(
  connection: Connection,
  run: (session: ClientSession) => Promise<void>,
): Promise<void> {
  return connection.client.withSession((session) => session.withTransaction(() => run(session), TRANSACTION));
}
