import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { ColonnadeError } from '@colonnade/contracts';

/** One connection with its prepared statements. Never an iterator: an open one pins an old snapshot. */
export type Db = {
  get<T>(sql: string, ...params: SQLInputValue[]): T | undefined;
  all<T>(sql: string, ...params: SQLInputValue[]): T[];
  /** Number of rows changed. */
  run(sql: string, ...params: SQLInputValue[]): number;
  /** Statements without parameters and without rows. */
  exec(sql: string): void;
  readonly inTransaction: boolean;
  /** Throws `unavailable` when the path no longer leads to the file this connection has open. */
  checkFile(): void;
  close(): void;
};

/**
 * Opens the estate file. A connection follows the file, not the path: one that was replaced or removed is noticed
 * by `checkFile`, since both reading and writing the old one would be wrong.
 */
export function openConnection(path: string, options: { readOnly: boolean; busyTimeoutMs: number }): Db {
  const before = fileIdentity(path);
  const raw = new DatabaseSync(path, {
    readOnly: options.readOnly,
    timeout: options.busyTimeoutMs,
    enableForeignKeyConstraints: true,
  });
  const statements = new Map<string, StatementSync>();
  const prepare = (sql: string): StatementSync => {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const made = raw.prepare(sql);
    statements.set(sql, made);
    return made;
  };
  const db: Db = {
    get: <T>(sql: string, ...params: SQLInputValue[]) => prepare(sql).get(...params) as T | undefined,
    all: <T>(sql: string, ...params: SQLInputValue[]) => prepare(sql).all(...params) as T[],
    run: (sql, ...params) => Number(prepare(sql).run(...params).changes),
    exec: (sql) => raw.exec(sql),
    get inTransaction() {
      return raw.isTransaction;
    },
    checkFile() {
      if (fileIdentity(path) !== before) {
        throw new ColonnadeError('unavailable', 'the estate file was replaced while it was open');
      }
    },
    close() {
      statements.clear();
      if (raw.isOpen) raw.close();
    },
  };
  try {
    db.checkFile();
  } catch (thrown) {
    db.close();
    throw thrown;
  }
  return db;
}

function fileIdentity(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw new ColonnadeError('unavailable', 'the estate file does not exist');
  return `${stat.dev}:${stat.ino}`;
}

/**
 * Makes the directory (0700) and an empty file (0600); SQLite gives its `-wal` and `-shm` the mode of the file.
 * A file that exists is only chmod-ed, never opened and closed here: closing any descriptor of a file drops the
 * POSIX locks that other connections of this process hold on it.
 */
export function createEstateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
    chmodSync(path, 0o600);
  }
}
