import type { ClientSession, Collection, Document } from 'mongodb';
import type { EstateView, ViewRows } from '../port-bulk.ts';
import { isAsNew, readClock, readNewestClock } from './clock.ts';
import type { Connection, Tables } from './connection.ts';
import * as documents from './documents.ts';
import { outdated } from './errors.ts';
import { toInventory } from './inventories.ts';
import { INDEX } from './schema.ts';
import { toService } from './services.ts';
import { toTask, toTemplate } from './task-documents.ts';
import { TRANSACTION } from './transaction.ts';

const PAGE_ROWS = 100;

type Io = { table: keyof Tables; key: Record<string, 1>; toRow: (found: never) => unknown };

const IO: { readonly [K in keyof ViewRows]: Io } = {
  collections: { table: 'collections', key: INDEX.id, toRow: documents.toCollection },
  masters: { table: 'masters', key: INDEX.id, toRow: documents.toMaster },
  minions: { table: 'minions', key: INDEX.minion, toRow: documents.toMinion },
  inventories: { table: 'inventories', key: INDEX.minion, toRow: toInventory },
  templates: { table: 'templates', key: INDEX.id, toRow: toTemplate },
  tasks: { table: 'tasks', key: INDEX.id, toRow: toTask },
  services: { table: 'services', key: INDEX.id, toRow: toService },
  pillars: { table: 'pillars', key: INDEX.pillarKey, toRow: documents.toPillar },
};

/**
 * A transaction that only reads: all its queries are of one moment, which the server keeps for a minute
 * (`transactionLifetimeLimitSeconds`); after that it is `unavailable`. A snapshot session would be kept for five, but
 * not every server that speaks MongoDB's protocol has them.
 */
export async function openView(connection: Connection): Promise<EstateView> {
  const newest = await readNewestClock(connection);
  const session = connection.client.startSession();
  try {
    session.startTransaction(TRANSACTION);
    const clock = await readClock(connection, session);
    if (!isAsNew(clock, newest)) throw outdated();
    const { incarnation, tick } = clock;
    return {
      clock: { incarnation, tick },
      async *pages<K extends keyof ViewRows>(table: K) {
        const { table: name, key, toRow } = IO[table];
        const collection = connection.tables[name] as unknown as Collection<Document>;
        const options = { session, hint: key, sort: key, batchSize: PAGE_ROWS, ...connection.limit };
        const cursor = collection.find({}, options);
        try {
          while (await connection.use(() => cursor.hasNext())) {
            yield cursor.readBufferedDocuments().map(toRow as never) as ViewRows[K][];
          }
        } finally {
          await cursor.close().catch(() => undefined);
        }
      },
      [Symbol.asyncDispose]: () => end(session),
    };
  } catch (thrown) {
    await end(session);
    throw thrown;
  }
}

async function end(session: ClientSession): Promise<void> {
  if (session.inTransaction()) await session.abortTransaction().catch(() => undefined);
  await session.endSession();
}
