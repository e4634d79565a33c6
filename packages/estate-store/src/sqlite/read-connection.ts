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
  close(): void;
};

export function createReadConnection(path: string, busyTimeoutMs: number): ReadConnection {
  let db: Db | undefined;
  let seen: Clock | undefined;
  let closed = false;
  const drop = () => {
    const old = db;
    db = undefined;
    old?.close();
  };
  return {
    read(run) {
      if (closed) throw new ColonnadeError('unavailable', 'the estate store is closed');
      try {
        if (db !== undefined) dropReplaced(db, drop);
        db ??= openReadOnly(path, busyTimeoutMs);
        return readTransaction(db, (open, clock) => {
          checkForward(seen, clock);
          seen = clock;
          return run(open, clock);
        });
      } catch (thrown) {
        const error = toStoreError(thrown);
        if (error.code === 'unavailable' || error.code === 'misconfigured' || error.code === 'internal')
          drop();
        throw error;
      }
    },
    close() {
      closed = true;
      drop();
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
