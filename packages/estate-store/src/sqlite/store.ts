import type { EstateReader, EstateStore, WriteBatch, WriteResult } from '../port.ts';
import type { ImportWrites } from '../port-bulk.ts';
import type { KeyWrites } from '../port-keys.ts';
import { packBatch, packText } from '../rules/batch.ts';
import { CHANGE_TICKS_KEPT } from '../rules/clock.ts';
import { packChanges } from '../rules/import.ts';
import * as inventories from './inventories.ts';
import * as keys from './key-use.ts';
import { createReadConnection, type ReadConnection } from './read-connection.ts';
import * as reads from './reads.ts';
import { readValue } from './rows.ts';
import * as scopes from './scope-history.ts';
import { searchPillars } from './search.ts';
import * as services from './services.ts';
import { readSnapshot } from './snapshot.ts';
import * as tasks from './task-reads.ts';
import { openView } from './view.ts';
import { startWriter, type WriterClient } from './writer-client.ts';

export type SqliteStoreOptions = {
  /** The estate file; its directory is made (0700) when missing, the file gets mode 0600. */
  path: string;
  /** How long a write waits for another process's write, milliseconds. */
  busyTimeoutMs?: number;
  /** After a restore from a backup: a new incarnation of the clock, so that nothing cached or handed out before counts. */
  newIncarnation?: boolean;
  /** Size the file may grow to; undefined: the disk decides. Beyond it writes are `unavailable`. */
  maxBytes?: number;
  /** Ticks for which `snapshot` can still name what changed. */
  changeTicksKept?: number;
};

const BUSY_TIMEOUT_MS = 5000;
/** Reads block the event loop, and wait only for a recovery after a crash or the end of a last writer. */
const READ_BUSY_TIMEOUT_MS = 1000;

/**
 * Opens the estate for reading and writing; makes or migrates the file.
 * @throws ColonnadeError `unavailable` (disk, lock, rights) | `misconfigured` (newer schema, not an estate)
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<EstateStore> {
  const writer = await startWriter({
    path: options.path,
    busyTimeoutMs: options.busyTimeoutMs ?? BUSY_TIMEOUT_MS,
    newIncarnation: options.newIncarnation ?? false,
    maxBytes: options.maxBytes,
    changeTicksKept: options.changeTicksKept ?? CHANGE_TICKS_KEPT,
  });
  const connection = createReadConnection(options.path, READ_BUSY_TIMEOUT_MS);
  return {
    ...createReading(connection),
    ...createWriting(writer),
    ...createImporting(writer),
    openView: async () => openView(options.path, READ_BUSY_TIMEOUT_MS),
    async ping() {
      connection.read(() => undefined);
      await writer.ask('ping', undefined);
    },
    async [Symbol.asyncDispose]() {
      connection.close();
      await writer.close();
    },
  };
}

/**
 * Opens the estate read-only, beside a writer in whatever process, or none. The file may come later: until then
 * every call is `unavailable`.
 */
export async function openSqliteReader(options: { path: string }): Promise<EstateReader> {
  const connection = createReadConnection(options.path, READ_BUSY_TIMEOUT_MS);
  return {
    async snapshot(query) {
      return connection.read((db, clock) => readSnapshot(db, clock, query));
    },
    async listMasters() {
      return connection.read((db) => reads.listMasters(db));
    },
    async ping() {
      connection.read(() => undefined);
    },
    async [Symbol.asyncDispose]() {
      connection.close();
    },
  };
}

type Reading = Omit<
  EstateStore,
  keyof Writing | keyof ImportWrites | 'openView' | 'ping' | typeof Symbol.asyncDispose
>;
type Writing = Pick<
  EstateStore,
  'write' | 'trimHistory' | 'dropOutbox' | 'acquireLease' | 'releaseLease' | 'noteTokenUse' | keyof KeyWrites
>;

function createReading({ read, readKept }: ReadConnection): Reading {
  return {
    snapshot: async (query) => read((db, clock) => readSnapshot(db, clock, query)),
    getPillar: async (pid) => read((db) => reads.readPillar(db, pid)),
    findPillar: async (tgtType, tgtId, name, pillarenv) =>
      read((db) => reads.findPillar(db, tgtType, tgtId, name, pillarenv)),
    listPillars: async (filter, page) => read((db) => reads.listPillars(db, filter, page)),
    listVersions: async (pid, page) => read((db) => reads.listVersions(db, pid, page)),
    getVersion: async (pid, tick) => read((db) => reads.getVersion(db, pid, tick)),
    readScopeHistory: async (pillarenv, options) =>
      read((db, clock) => reads.readScopeHistory(db, clock, pillarenv, options)),
    readScopePage: async (pillarenv, options) =>
      read((db, clock) => scopes.readScopePage(db, clock, pillarenv, options)),
    findScopeChange: async (pillarenv, options) =>
      read((db, clock) => scopes.findScopeChange(db, clock, pillarenv, options)),
    getCollection: async (id) => read((db) => reads.readCollection(db, id)),
    listCollections: async () => read((db) => reads.listCollections(db)),
    getBranch: async (id) => read((db) => reads.readBranch(db, id)),
    getMaster: async (id) => read((db) => reads.readMaster(db, id)),
    listMasters: async () => read((db) => reads.listMasters(db)),
    getMinion: async (master, id) => read((db) => reads.readMinion(db, master, id)),
    listMinions: async (filter, page) => read((db) => reads.listMinions(db, filter, page)),
    getToken: async (id) => read((db) => reads.readToken(db, id)),
    listTokens: async () => read((db) => reads.listTokens(db)),
    findIdempotent: async (scope) => read((db) => reads.findIdempotent(db, scope, Date.now())),
    searchPillars: async (search, page) => read((db) => searchPillars(db, search, page)),
    readOutbox: async (limit) => read((db) => reads.readOutbox(db, limit)),
    getTemplate: async (id) => read((db) => tasks.readTemplate(db, id)),
    listTemplates: async (page) => read((db) => tasks.listTemplates(db, page)),
    // Of each request of a task it is asked whether that task lives.
    getTask: async (id) => readKept(`task ${id}`, (db) => tasks.readTask(db, id)),
    listTasks: async (filter, page) => read((db) => tasks.listTasks(db, filter, page)),
    getInventory: async (master, id) => read((db) => inventories.readInventory(db, master, id)),
    listInventories: async (filter, page) => read((db) => inventories.listInventories(db, filter, page)),
    getService: async (id) => read((db) => services.readService(db, id)),
    listServices: async (page) => read((db) => services.listServices(db, page)),
    countKeyUse: async () => read((db) => keys.countKeyUse(db)),
    listSealed: async (kid, page) => read((db) => keys.listSealed(db, kid, page)),
    readClosedKids: async () => read((db) => keys.readClosedKids(db)),
    readRewrap: async () => read((db) => keys.readRewrap(db)),
  };
}

function createWriting(writer: WriterClient): Writing {
  return {
    write: (batch) => write(writer, batch),
    trimHistory: (retention, { after }) => writer.ask('trimHistory', { retention, after }),
    dropOutbox: ({ tick, index }, lease) =>
      writer.ask('dropOutbox', { tick, index, lease: lease.name, fence: lease.fence }),
    acquireLease: (name, holder, ttlMs) => writer.ask('acquireLease', { name, holder, ttlMs }),
    releaseLease: (name, holder) => writer.ask('releaseLease', { name, holder }),
    noteTokenUse: (id, atMs) => writer.ask('noteTokenUse', { id, atMs }),
    swapSealed: async (swaps) =>
      writer.ask(
        'swapSealed',
        swaps.map(({ pid, from, to }) => ({ pid, from: packText(from), to: packText(to) })),
      ),
    closeKids: (kids) => writer.ask('closeKids', [...kids]),
    writeRewrap: (progress) => writer.ask('writeRewrap', progress),
  };
}

function createImporting(writer: WriterClient): ImportWrites {
  const drop = async (which: { id: string } | { idleSinceMs: number }) => {
    let imports = 0;
    for (let more = true; more; ) {
      const dropped = await writer.ask('dropImports', which);
      imports += dropped.imports;
      more = dropped.more;
    }
    return imports;
  };
  return {
    stageImport: async (id, changes) =>
      writer.ask('stageImport', { id, changes: packChanges(changes, packText) }),
    async applyImport(id, { events, ...rest }) {
      const packed = events.map((event) => ({ ...event, data: packText(event.data) }));
      const clock = await writer.ask('applyImport', { id, ...rest, events: packed });
      await drop({ id });
      return { clock };
    },
    dropImport: async (id) => void (await drop({ id })),
    sweepImports: (idleMs) => drop({ idleSinceMs: Date.now() - idleMs }),
  };
}

async function write(writer: WriterClient, batch: WriteBatch): Promise<WriteResult> {
  const result = await writer.ask('write', packBatch(batch, packText));
  return result.replayed ? { ...result, response: readValue(result.response) } : result;
}
