import { ColonnadeError } from '@colonnade/contracts';
import { type Collection, type Db, type Document, type Long, MongoClient, type UUID } from 'mongodb';
import type {
  AnswerDocument,
  ChangeDocument,
  CollectionDocument,
  LeaseDocument,
  MasterDocument,
  MinionDocument,
  OutboxDocument,
  PillarDocument,
  TokenDocument,
  VersionDocument,
} from './documents.ts';
import { toMongoStoreError } from './errors.ts';
import type { ImportDocument } from './imports.ts';
import type { InventoryDocument } from './inventories.ts';
import { clientOptions, type MongoOptions, OPERATION_TIMEOUT_MS } from './options.ts';
import type { ServiceDocument } from './services.ts';
import type { TaskDocument, TemplateDocument } from './task-documents.ts';
import { readTlsFiles } from './tls-files.ts';

/** The one document of this collection that counts: the clock, with the version of the schema. */
export type ClockDocument = {
  _id: 'clock';
  schema_version: number;
  incarnation: string;
  tick: Long;
  changes_floor: Long;
  /** Keys no write may bring in; absent: none. */
  closed_kids?: readonly string[];
};

/** Set while a copy is under way into this database: until it is whole, it is no estate. */
export type CopyMark = { _id: 'copy'; started_at: Date };

/** The newest deletion whose pillar is forgotten whole, and when that was; absent: there is none. */
export type HistoryDocument = { _id: 'history'; floor: Long; floor_at: Date };

/** How far values are rewrapped, as text; absent: it was never begun. */
export type RewrapDocument = { _id: 'rewrap'; progress: string };

/** A session in which some process writes; see `unblock.ts`. */
export type WriterDocument = { _id: UUID; seen_at: Date; held_until?: Date };

export type Tables = {
  /** The name the seed gives it; all others carry ours, since another program may live in the same database. */
  pillars: Collection<PillarDocument>;
  versions: Collection<VersionDocument>;
  collections: Collection<CollectionDocument>;
  masters: Collection<MasterDocument>;
  minions: Collection<MinionDocument>;
  tokens: Collection<TokenDocument>;
  outbox: Collection<OutboxDocument>;
  changes: Collection<ChangeDocument>;
  answers: Collection<AnswerDocument>;
  leases: Collection<LeaseDocument>;
  writers: Collection<WriterDocument>;
  meta: Collection<ClockDocument | CopyMark | HistoryDocument | RewrapDocument>;
  templates: Collection<TemplateDocument>;
  tasks: Collection<TaskDocument>;
  /** Staged changes; read with `exact`, since they hold values. */
  imports: Collection<ImportDocument>;
  inventories: Collection<InventoryDocument>;
  services: Collection<ServiceDocument>;
};

export const TABLE_NAMES: { readonly [K in keyof Tables]: string } = {
  pillars: 'pillars',
  versions: 'colonnade_versions',
  collections: 'colonnade_collections',
  masters: 'colonnade_masters',
  minions: 'colonnade_minions',
  tokens: 'colonnade_tokens',
  outbox: 'colonnade_outbox',
  changes: 'colonnade_changes',
  answers: 'colonnade_answers',
  leases: 'colonnade_leases',
  writers: 'colonnade_writers',
  meta: 'colonnade_meta',
  templates: 'colonnade_templates',
  tasks: 'colonnade_tasks',
  imports: 'colonnade_imports',
  inventories: 'colonnade_inventories',
  services: 'colonnade_services',
};

export type Connection = AsyncDisposable & {
  client: MongoClient;
  db: Db;
  tables: Tables;
  /** For every operation: what the server may take for it. */
  limit: { maxTimeMS: number };
  /** Runs it as long as the connection is open. @throws ColonnadeError, whatever the driver throws */
  use<T>(run: () => Promise<T>): Promise<T>;
};

/** MongoDB 5.0: `$` in the names of nested fields. */
const MIN_WIRE_VERSION = 13;

/**
 * A pool of connections, made at the first use.
 * @throws ColonnadeError `misconfigured`
 */
export function openConnection(options: MongoOptions): Connection {
  const client = createClient(options);
  if (options.onCommand !== undefined) client.on('commandStarted', options.onCommand);
  const db = client.db(options.database);
  const ready = createCheck(client, db);
  let closed = false;
  return {
    client,
    db,
    tables: openTables(db),
    limit: { maxTimeMS: options.operationTimeoutMs ?? OPERATION_TIMEOUT_MS },
    async use(run) {
      if (closed) throw new ColonnadeError('unavailable', 'the estate store is closed');
      try {
        await ready();
        return await run();
      } catch (thrown) {
        throw toMongoStoreError(thrown);
      }
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      await client.close();
    },
  };
}

function createClient(options: MongoOptions): MongoClient {
  const settings = clientOptions(options);
  try {
    if (options.tls === undefined) return new MongoClient(options.url, settings);
    const files = readTlsFiles(options.tls);
    const client = new MongoClient(options.url, { ...settings, ...files.options });
    files.follow(client);
    return client;
  } catch {
    // What the driver says may repeat the url or what a file holds.
    throw new ColonnadeError('misconfigured', 'the url or the TLS files of MongoDB cannot be used');
  }
}

function openTables(db: Db): Tables {
  const open = <T extends Document>(key: keyof Tables) => db.collection<T>(TABLE_NAMES[key]);
  const exact = { promoteValues: false };
  return {
    pillars: db.collection(TABLE_NAMES.pillars, exact),
    versions: db.collection(TABLE_NAMES.versions, exact),
    collections: open('collections'),
    masters: open('masters'),
    minions: open('minions'),
    tokens: open('tokens'),
    outbox: open('outbox'),
    changes: open('changes'),
    answers: open('answers'),
    leases: open('leases'),
    writers: open('writers'),
    meta: open('meta'),
    templates: open('templates'),
    tasks: open('tasks'),
    imports: db.collection(TABLE_NAMES.imports, exact),
    inventories: open('inventories'),
    services: open('services'),
  };
}

/** Asks the server once what it is: transactions need a replica set. */
function createCheck(client: MongoClient, db: Db): () => Promise<void> {
  let checked = false;
  return async () => {
    if (checked) return;
    // By itself the driver connects once only: after a first use without a server it would stay closed.
    await client.connect();
    const hello = await db.command({ hello: 1 });
    if (hello.setName === undefined && hello.msg !== 'isdbgrid') {
      throw new ColonnadeError('misconfigured', 'the MongoDB server is no member of a replica set');
    }
    if (Number(hello.maxWireVersion) < MIN_WIRE_VERSION) {
      throw new ColonnadeError('misconfigured', 'the MongoDB server is older than 5.0');
    }
    checked = true;
  };
}
