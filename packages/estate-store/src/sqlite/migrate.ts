import { randomUUID } from 'node:crypto';
import { ColonnadeError } from '@colonnade/contracts';
import { INCARNATION_JUMP } from '../rules/clock.ts';
import type { Db } from './connection.ts';
import { MIGRATIONS, SCHEMA_VERSION } from './schema.ts';

/**
 * Brings the file to this program's schema, under the write lock, so that of several processes one does it and the
 * others find it done. With `newIncarnation` the clock gets a new identity in the same transaction.
 * @throws ColonnadeError `misconfigured` for a newer schema or a file that is not an estate.
 */
export function migrate(db: Db, options: { newIncarnation: boolean }): void {
  if (readSchemaVersion(db) === SCHEMA_VERSION && !options.newIncarnation) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    const from = readSchemaVersion(db);
    for (const [index, sql] of MIGRATIONS.entries()) {
      if (index >= from) db.exec(sql);
    }
    if (from === 0) {
      db.run(
        'INSERT INTO meta (id, schema_version, incarnation, tick, changes_floor) VALUES (1, ?, ?, 0, 0)',
        SCHEMA_VERSION,
        randomUUID(),
      );
    } else {
      db.run('UPDATE meta SET schema_version = ?', SCHEMA_VERSION);
      if (options.newIncarnation) renewIncarnation(db);
    }
    db.exec('COMMIT');
  } catch (thrown) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw thrown;
  }
}

/** Nothing cached before a restore may be used after it, and no lease of that time is held any longer. */
function renewIncarnation(db: Db): void {
  db.run('UPDATE meta SET incarnation = ?, tick = tick + ?', randomUUID(), INCARNATION_JUMP);
  db.run('UPDATE meta SET changes_floor = tick');
  db.run('DELETE FROM changes');
  db.run('UPDATE leases SET expires_at_ms = 0');
}

/**
 * The version of an open file; 0 for an empty one.
 * @throws ColonnadeError `misconfigured` for a newer schema or a file that is not an estate.
 */
export function readSchemaVersion(db: Db): number {
  const tables = db.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table'");
  if (tables.length === 0) return 0;
  if (!tables.some(({ name }) => name === 'meta')) throw notAnEstate();
  const row = db.get<{ schema_version: number }>('SELECT schema_version FROM meta WHERE id = 1');
  if (row === undefined) throw notAnEstate();
  checkNotNewer(row.schema_version);
  return row.schema_version;
}

/** @throws ColonnadeError `misconfigured` when a newer program has already migrated the file. */
export function checkNotNewer(version: number): void {
  if (version <= SCHEMA_VERSION) return;
  throw new ColonnadeError(
    'misconfigured',
    `the estate file has schema ${version}, this program knows up to ${SCHEMA_VERSION}: run the newer program`,
  );
}

function notAnEstate(): ColonnadeError {
  return new ColonnadeError('misconfigured', 'the file holds a database, but not an estate of Colonnade');
}
