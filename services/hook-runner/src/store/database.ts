import { closeSync, openSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { ColonnadeError } from '@colonnade/contracts';
import { MIGRATIONS } from './schema.ts';

/** The file of the runner. What SQLite says is `unavailable`, whatever it is. */
export type Database = Disposable & {
  get<T>(sql: string, ...params: SQLInputValue[]): T | undefined;
  all<T>(sql: string, ...params: SQLInputValue[]): T[];
  run(sql: string, ...params: SQLInputValue[]): void;
  transaction<T>(work: () => T): T;
};

/**
 * Opens or makes the file (mode 0600) and brings it to this program's schema.
 * @throws ColonnadeError `misconfigured` for the file of a newer program, `unavailable`
 */
export function openDatabase(file: string): Database {
  return guard(() => {
    closeSync(openSync(file, 'a', 0o600));
    const raw = new DatabaseSync(file, { timeout: 5000, enableForeignKeyConstraints: true });
    raw.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    const database = wrap(raw);
    migrate(raw, database);
    return database;
  });
}

function wrap(raw: DatabaseSync): Database {
  const statements = new Map<string, StatementSync>();
  const prepare = (sql: string): StatementSync => {
    const known = statements.get(sql) ?? raw.prepare(sql);
    statements.set(sql, known);
    return known;
  };
  return {
    get: <T>(sql: string, ...params: SQLInputValue[]) =>
      guard(() => prepare(sql).get(...params) as T | undefined),
    all: <T>(sql: string, ...params: SQLInputValue[]) => guard(() => prepare(sql).all(...params) as T[]),
    run: (sql, ...params) => void guard(() => prepare(sql).run(...params)),
    transaction: (work) =>
      guard(() => {
        raw.exec('BEGIN IMMEDIATE');
        try {
          const result = work();
          raw.exec('COMMIT');
          return result;
        } catch (thrown) {
          if (raw.isTransaction) raw.exec('ROLLBACK');
          throw thrown;
        }
      }),
    [Symbol.dispose]: () => raw.close(),
  };
}

function migrate(raw: DatabaseSync, database: Database): void {
  database.transaction(() => {
    const from = database.get<{ user_version: number }>('PRAGMA user_version')?.user_version ?? 0;
    if (from > MIGRATIONS.length) {
      throw new ColonnadeError('misconfigured', 'the file of the runner was written by a newer program');
    }
    for (const sql of MIGRATIONS.slice(from)) raw.exec(sql);
    raw.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
  });
}

function guard<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof ColonnadeError) throw thrown;
    throw new ColonnadeError('unavailable', 'the file of the runner cannot be used', { cause: thrown });
  }
}
