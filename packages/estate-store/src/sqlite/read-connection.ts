import { ColonnadeError } from '@colonnade/contracts';
import type { Clock } from '../port.ts';
import { checkForward, type ReadClock } from '../rules/clock.ts';
import { type Db, openConnection } from './connection.ts';
import { toStoreError } from './errors.ts';
import { checkNotNewer, readSchemaVersion } from './migrate.ts';
import { SCHEMA_VERSION } from './schema.ts';

/** Reads on the calling thread. Opens the file at the first use, and again after it failed or was replaced. */
export type ReadConnection = {
  /** Runs the function in one read transaction. @throws ColonnadeError `unavailable` when the store cannot answer */
  read<T>(run: (db: Db, clock: ReadClock) => T): T;
  /**
   * As `read`, for what is asked again and again: kept until anybody has written, which SQLite tells exactly.
   * @param key names what is read, and nothing else; whoever gets a record must not change it
   */
  readKept<T>(key: string, run: (db: Db) => T): T;
  close(): void;
};

export function createReadConnection(path: string, busyTimeoutMs: number): ReadConnection {
  let db: Db | undefined;
  let seen: Clock | undefined;
  let closed = false;
  const kept = createKept();
  const drop = () => {
    const old = db;
    db = undefined;
    kept.clear();
    old?.close();
  };
  const inTransaction = <T>(open: Db, run: (db: Db, clock: ReadClock) => T): T =>
    readTransaction(open, (within, clock) => {
      checkForward(seen, clock);
      seen = clock;
      return run(within, clock);
    });
  const withOpen = <T>(run: (open: Db) => T): T => {
    if (closed) throw new ColonnadeError('unavailable', 'the estate store is closed');
    try {
      if (db !== undefined) dropReplaced(db, drop);
      db ??= openReadOnly(path, busyTimeoutMs);
      return run(db);
    } catch (thrown) {
      const error = toStoreError(thrown);
      if (error.code === 'unavailable' || error.code === 'misconfigured' || error.code === 'internal') drop();
      throw error;
    }
  };
  return {
    read: (run) => withOpen((open) => inTransaction(open, run)),
    readKept: (key, run) => withOpen((open) => kept.find(open, key, () => inTransaction(open, run))),
    close() {
      closed = true;
      drop();
    },
  };
}

/** Records that are kept at most; of a fleet's tasks those that ask now. */
const KEPT = 1000;

function createKept() {
  let version: number | undefined;
  const kept = new Map<string, unknown>();
  return {
    clear: () => kept.clear(),
    find<T>(db: Db, key: string, read: () => T): T {
      // Another one as soon as any other connection has committed, and this one never writes. It is taken before what is read.
      const now = db.get<{ data_version: number }>('PRAGMA data_version')?.data_version;
      if (now === undefined || now !== version || kept.size >= KEPT) kept.clear();
      version = now;
      if (!kept.has(key)) kept.set(key, read());
      return kept.get(key) as T;
    },
  };
}

function dropReplaced(db: Db, drop: () => void): void {
  try {
    db.checkFile();
  } catch {
    drop();
  }
}

export function openReadOnly(path: string, busyTimeoutMs: number): Db {
  const db = openConnection(path, { readOnly: true, busyTimeoutMs });
  try {
    const version = readSchemaVersion(db);
    if (version < SCHEMA_VERSION) {
      throw new ColonnadeError(
        'unavailable',
        'the estate file waits for its writer to bring it to this schema',
      );
    }
    return db;
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

function readTransaction<T>(db: Db, run: (db: Db, clock: ReadClock) => T): T {
  db.run('BEGIN');
  try {
    return run(db, readClock(db));
  } finally {
    if (db.inTransaction) db.run('ROLLBACK');
  }
}

/** The first read of a transaction: it fixes the snapshot, so the clock is never newer than the rows. */
export function readClock(db: Db): ReadClock {
  const row = db.get<{ schema_version: number; incarnation: string; tick: number; changes_floor: number }>(
    'SELECT schema_version, incarnation, tick, changes_floor FROM meta',
  );
  if (row === undefined) throw new ColonnadeError('unavailable', 'the estate has no clock');
  checkNotNewer(row.schema_version);
  return { incarnation: row.incarnation, tick: row.tick, changesFloor: row.changes_floor };
}
