import { ColonnadeError } from '@colonnade/contracts';
import { type Collection, Long } from 'mongodb';
import { type Connection, TABLE_NAMES } from '../connection.ts';
import type { MongoOptions } from '../options.ts';
import { INDEX } from '../schema.ts';
import { type AdoptFields, type ForeignDocument, SEED_FIELDS } from './fields.ts';
import type { JudgeOptions } from './judge.ts';

export type AdoptOptions = MongoOptions & {
  /** The collection to adopt, on the same server; `pillars` of the estate's own database unless given. */
  source?: { database?: string; collection?: string };
  /** Names of its fields that are not those of the seed. */
  fields?: Partial<AdoptFields>;
  /** Who adopts: stands where a document does not tell who made it. */
  by: string;
};

/** Documents looked at together, and adopted in one transaction. */
const CHUNK = 100;

export type AdoptPlace = JudgeOptions & {
  /** Names of the estate's database, and of the collection with its database. */
  names: readonly string[];
  /** @throws ColonnadeError `misconfigured` when there is no such collection */
  check(): Promise<void>;
  /** Chunks in the order of `_id`; those that are pillars of ours already are told apart. */
  read(): AsyncIterable<readonly ForeignDocument[]>;
  isAdopted(document: ForeignDocument): boolean;
};

/** @throws ColonnadeError `misconfigured` for other field names in the estate's own collection */
export function openPlace(connection: Connection, options: AdoptOptions, atMs: number): AdoptPlace {
  const { database = options.database, collection = TABLE_NAMES.pillars } = options.source ?? {};
  const inPlace = database === options.database && collection === TABLE_NAMES.pillars;
  const fields = { ...SEED_FIELDS, ...options.fields };
  const isRenamed = Object.entries(fields).some(([ours, theirs]) => ours !== 'pid' && ours !== theirs);
  if (inPlace && isRenamed) {
    const why = 'a collection with other field names is adopted into another database, not in place';
    throw new ColonnadeError('misconfigured', why);
  }
  const from = connection.client
    .db(database)
    .collection(collection, { promoteValues: false }) as unknown as Collection<ForeignDocument>;
  return {
    ...{ fields, inPlace, by: options.by, atMs, names: [options.database, database, collection] },
    async check() {
      const source = connection.client.db(database);
      if (await source.listCollections({ name: collection }, { nameOnly: true }).hasNext()) return;
      const why = 'there is no such collection to adopt: look at its name and at that of its database';
      throw new ColonnadeError('misconfigured', why);
    },
    isAdopted: (document) => inPlace && document.tick instanceof Long && typeof document.pid === 'string',
    async *read() {
      const cursor = from.find({}, { hint: INDEX.id, sort: { _id: 1 }, batchSize: CHUNK });
      await using _closed = { [Symbol.asyncDispose]: () => cursor.close() };
      while (await cursor.hasNext()) yield cursor.readBufferedDocuments(CHUNK) as ForeignDocument[];
    },
  };
}
