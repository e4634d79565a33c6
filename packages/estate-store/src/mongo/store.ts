import type { EstateReader, EstateStore } from '../port.ts';
import type { ImportWrites } from '../port-bulk.ts';
import type { KeyStore } from '../port-keys.ts';
import { packBatch, packText } from '../rules/batch.ts';
import { CHANGE_TICKS_KEPT } from '../rules/clock.ts';
import { applyBatch } from './apply-batch.ts';
import { readNewestClock } from './clock.ts';
import { type Connection, openConnection } from './connection.ts';
import { applyImport, dropImport, stageImport, sweepImports } from './imports.ts';
import * as inventories from './inventories.ts';
import * as keys from './key-use.ts';
import { acquireLease, dropOutbox, releaseLease } from './leases.ts';
import { migrate, renewIncarnation } from './migrate.ts';
import { type MongoOptions, OPERATION_TIMEOUT_MS } from './options.ts';
import * as reads from './reads.ts';
import { INDEX } from './schema.ts';
import * as scopes from './scope-history.ts';
import { searchPillars } from './search.ts';
import * as services from './services.ts';
import { createSnapshotReader } from './snapshot.ts';
import { packStoredValue } from './stored-value.ts';
import * as tasks from './task-reads.ts';
import { readTransaction } from './transaction.ts';
import { trimHistory } from './trim-history.ts';
import { openView } from './view.ts';
import { createWriteQueue, type WriteQueue } from './write-queue.ts';

export type MongoStoreOptions = MongoOptions & {
  /** How long a write is tried again while others write, or the primary changes, milliseconds. */
  writeTimeoutMs?: number;
  /** After a restore from a backup: a new incarnation of the clock, so that nothing cached or handed out before counts. */
  newIncarnation?: boolean;
  /** Ticks for which `snapshot` can still name what changed. */
  changeTicksKept?: number;
};

const WRITE_TIMEOUT_MS = 5000;

/**
 * Opens the estate for reading and writing; makes or migrates it.
 * @throws ColonnadeError `unavailable` (no primary) | `misconfigured` (rights, no replica set, newer schema, not an estate)
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<EstateStore> {
  const connection = openConnection(options);
  const queue = createWriteQueue(connection, {
    changeTicksKept: options.changeTicksKept ?? CHANGE_TICKS_KEPT,
    writeTimeoutMs: options.writeTimeoutMs ?? WRITE_TIMEOUT_MS,
  });
  const dispose = async () => {
    await queue.close();
    await connection[Symbol.asyncDispose]();
  };
  try {
    await connection.use(() => migrate(connection, { overForeignPillars: false }));
    // The first transaction of the queue also says whether there may be any: rights are asked for here, not later.
    await queue.run(options.newIncarnation ? renewIncarnation : async () => undefined);
  } catch (thrown) {
    await dispose();
    throw thrown;
  }
  return {
    ...createReader(connection, options),
    ...createReading(connection),
    ...createWriting(queue),
    ...createTrimming(connection),
    ...createImporting(connection, queue),
    ...createKeyStore(connection, queue),
    openView: () => connection.use(() => openView(connection)),
    [Symbol.asyncDispose]: dispose,
  };
}

/**
 * Opens the estate read-only, with the rights of `mergerRole`. The server and the estate may come later: until then
 * every call is `unavailable`.
 * @throws ColonnadeError `misconfigured` (url, TLS files)
 */
export async function openMongoReader(options: MongoOptions): Promise<EstateReader> {
  const connection = openConnection(options);
  return {
    ...createReader(connection, options),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

type Reader = Omit<EstateReader, typeof Symbol.asyncDispose>;
type Writing = Pick<EstateStore, 'write' | 'dropOutbox' | 'acquireLease' | 'releaseLease' | 'noteTokenUse'>;
type Trimming = Pick<EstateStore, 'trimHistory'>;
type Reading = Omit<
  EstateStore,
  keyof Writing | keyof ImportWrites | keyof Trimming | keyof KeyStore | 'openView' | keyof EstateReader
>;

function createReader(connection: Connection, { operationTimeoutMs }: MongoOptions): Reader {
  const snapshot = createSnapshotReader(connection, operationTimeoutMs ?? OPERATION_TIMEOUT_MS);
  return {
    snapshot: (query) => connection.use(() => snapshot(query)),
    listMasters: () =>
      connection.use(async () => {
        await readNewestClock(connection);
        return await reads.listMasters(connection.tables, connection.limit);
      }),
    ping: () => connection.use(async () => void (await readNewestClock(connection))),
  };
}

function createReading({ tables, limit, use, ...rest }: Connection): Reading {
  const connection = { tables, limit, use, ...rest };
  const deadlineMs = () => performance.now() + limit.maxTimeMS;
  return {
    getPillar: (pid) => use(() => reads.readPillar(tables, limit, pid)),
    findPillar: (...key) => use(() => reads.findPillar(tables, limit, ...key)),
    listPillars: (filter, page) => use(() => reads.listPillars(tables, limit, filter, page)),
    listVersions: (pid, page) => use(() => reads.listVersions(tables, limit, pid, page)),
    getVersion: (pid, tick) => use(() => reads.getVersion(tables, limit, pid, tick)),
    readScopeHistory: (pillarenv, options) =>
      use(() =>
        readTransaction(connection, deadlineMs(), (group) =>
          reads.readScopeHistory(group, pillarenv, options),
        ),
      ),
    readScopePage: (pillarenv, options) =>
      use(() =>
        readTransaction(connection, deadlineMs(), (group) => scopes.readScopePage(group, pillarenv, options)),
      ),
    findScopeChange: (pillarenv, options) =>
      use(() =>
        readTransaction(connection, deadlineMs(), (group) =>
          scopes.findScopeChange(group, pillarenv, options),
        ),
      ),
    getCollection: (id) => use(() => reads.readCollection(tables, limit, id)),
    listCollections: () => use(() => reads.listCollections(tables, limit)),
    getBranch: (id) =>
      use(() =>
        readTransaction(connection, deadlineMs(), ({ within }) => reads.readBranch(tables, within, id)),
      ),
    getMaster: (id) => use(() => reads.readMaster(tables, limit, id)),
    getMinion: (master, id) => use(() => reads.readMinion(tables, limit, master, id)),
    listMinions: (filter, page) => use(() => reads.listMinions(tables, limit, filter, page)),
    getToken: (id) => use(() => reads.readToken(tables, limit, id)),
    listTokens: () => use(() => reads.listTokens(tables, limit)),
    findIdempotent: (scope) => use(() => reads.findIdempotent(tables, limit, scope, Date.now())),
    searchPillars: (search, page) => use(() => searchPillars(tables, limit, search, page)),
    readOutbox: (count) => use(() => reads.readOutbox(tables, limit, count)),
    getTemplate: (id) => use(() => tasks.readTemplate(tables, limit, id)),
    listTemplates: (page) => use(() => tasks.listTemplates(tables, limit, page)),
    getTask: (id) => use(() => tasks.readTask(tables, limit, id)),
    listTasks: (filter, page) => use(() => tasks.listTasks(tables, limit, filter, page)),
    getInventory: (master, id) => use(() => inventories.readInventory(tables, limit, master, id)),
    getService: (id) => use(() => services.readService(tables, limit, id)),
    listServices: (page) => use(() => services.listServices(tables, limit, page)),
    listInventories: (filter, page) => use(() => inventories.listInventories(tables, limit, filter, page)),
  };
}

function createTrimming({ tables, limit, use }: Connection): Trimming {
  return {
    trimHistory: (retention, { after }) => use(() => trimHistory(tables, limit, { retention, after })),
  };
}

function createKeyStore({ tables, limit, use }: Connection, { run }: WriteQueue): KeyStore {
  return {
    countKeyUse: () => use(() => keys.countKeyUse(tables, limit)),
    listSealed: (kid, page) => use(() => keys.listSealed(tables, limit, kid, page)),
    swapSealed: (swaps) => use(() => keys.swapSealed(tables, limit, swaps)),
    async closeKids(kids) {
      await use(() => keys.fillIn(tables, limit));
      await run((group) => keys.closeKids(group, kids));
    },
    readClosedKids: () => use(() => keys.readClosedKids(tables, limit)),
    readRewrap: () => use(() => keys.readRewrap(tables, limit)),
    writeRewrap: (progress) => use(() => keys.writeRewrap(tables, limit, progress)),
  };
}

function createWriting({ run }: WriteQueue): Writing {
  return {
    async write(batch) {
      const packed = packBatch(batch, packStoredValue);
      return await run((group) => applyBatch(group, packed, Date.now()));
    },
    dropOutbox: (upTo, lease) => run((group) => dropOutbox(group, upTo, lease)),
    acquireLease: (name, holder, ttlMs) =>
      run(({ tables, within }) => acquireLease(tables.leases, within, { name, holder, ttlMs })),
    releaseLease: (name, holder) =>
      run(({ tables, within }) => releaseLease(tables.leases, within, { name, holder })),
    noteTokenUse: (id, atMs) =>
      run(async ({ tables, within }) => {
        // $max on null: the server takes any date for larger.
        const change = { $max: { last_used_at: new Date(atMs) } };
        await tables.tokens.updateOne({ _id: id }, change, { ...within, hint: INDEX.id });
      }),
  };
}

function createImporting(connection: Connection, { run }: WriteQueue): ImportWrites {
  return {
    stageImport: (id, changes) => connection.use(() => stageImport(connection, id, changes)),
    async applyImport(id, { events, ...rest }) {
      const packed = { ...rest, events: events.map((event) => ({ ...event, data: packText(event.data) })) };
      const clock = await run((group) => applyImport(group, id, packed), { long: true });
      // Applied it is; what is left of it is swept when it cannot be dropped now.
      await connection.use(() => dropImport(connection, id)).catch(() => undefined);
      return { clock };
    },
    dropImport: (id) => connection.use(() => dropImport(connection, id)),
    sweepImports: (idleMs) => connection.use(() => sweepImports(connection, idleMs)),
  };
}
