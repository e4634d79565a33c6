import { randomUUID } from 'node:crypto';
import type { SQLInputValue } from 'node:sqlite';
import { ColonnadeError } from '@colonnade/contracts';
import { canonicalText } from '@colonnade/value';
import {
  ARCHIVE_CHUNK,
  ARCHIVE_TABLES,
  type ArchiveRows,
  type ArchiveSource,
  type ArchiveTable,
  type ArchiveTarget,
  type ReadRows,
} from '../copy/archive.ts';
import type { PillarRecord } from '../port.ts';
import type { Db } from './connection.ts';
import { toStoreError } from './errors.ts';
import { INVENTORY_IO } from './inventories.ts';
import { readClosedKids, readRewrap, writeRewrap } from './key-use.ts';
import { openReadOnly, readClock } from './read-connection.ts';
import { readHistoryFloor } from './reads.ts';
import * as rows from './rows.ts';
import { SERVICE_IO } from './services.ts';
import { TASK_IO } from './task-archive.ts';
import { openForWriting } from './writer.ts';

/** An estate file read whole, or filled whole. It works on the calling thread: for a command, not for a service. */

const BUSY_TIMEOUT_MS = 5000;

type Key = SQLInputValue[];

export type TableIo<R> = {
  /** Selects in the order of the key, after the one given as `(?, ?)`. */
  select: { sql: string; first: Key; keyOf: (row: R) => Key };
  toRow: (found: never) => R;
  insert: (db: Db, row: R) => void;
};

const IO: { readonly [T in ArchiveTable]: TableIo<ArchiveRows[T]> } = {
  collections: {
    select: {
      sql: 'SELECT * FROM collections WHERE id > ? ORDER BY id',
      first: [''],
      keyOf: (row) => [row.id],
    },
    toRow: rows.toCollection,
    insert: (db, { id, name, parentId, owner, rule, tick }) =>
      db.run(
        'INSERT INTO collections (id, name, parent_id, owner, rule, tick) VALUES (?, ?, ?, ?, ?, ?)',
        ...[id, name, parentId ?? null, owner, rule ?? null, tick],
      ),
  },
  masters: {
    select: { sql: 'SELECT * FROM masters WHERE id > ? ORDER BY id', first: [''], keyOf: (row) => [row.id] },
    toRow: rows.toMaster,
    insert: (db, { id, envs, tokenIds, onUnknownMinion, tick }) =>
      db.run(
        'INSERT INTO masters (id, envs, token_ids, on_unknown_minion, tick) VALUES (?, ?, ?, ?, ?)',
        ...[id, rows.writeList(envs), rows.writeList(tokenIds), onUnknownMinion, tick],
      ),
  },
  minions: {
    select: {
      sql: `${rows.SELECT_MINION} WHERE (m.master, m.id) > (?, ?) ORDER BY m.master, m.id`,
      first: ['', ''],
      keyOf: (row) => [row.master, row.id],
    },
    toRow: rows.toMinion,
    insert: insertMinion,
  },
  tokens: {
    select: { sql: 'SELECT * FROM tokens WHERE id > ? ORDER BY id', first: [''], keyOf: (row) => [row.id] },
    toRow: rows.toToken,
    insert: (db, token) => db.run(rows.WRITE_TOKEN, ...rows.tokenColumns(token)),
  },
  pillars: {
    select: {
      sql: 'SELECT * FROM pillars WHERE pid > ? ORDER BY pid',
      first: [''],
      keyOf: (row) => [row.pid],
    },
    toRow: rows.toPillar,
    insert: (db, row) =>
      db.run(
        `INSERT INTO pillars (${rows.PILLAR_FIELDS}, tick) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ...pillarColumns(row),
      ),
  },
  versions: {
    select: {
      sql: 'SELECT * FROM pillar_versions WHERE (pid, tick) > (?, ?) ORDER BY pid, tick',
      first: ['', 0],
      keyOf: (row) => [row.pid, row.tick],
    },
    toRow: rows.toVersion,
    insert: (db, row) =>
      db.run(
        `INSERT INTO pillar_versions (${rows.PILLAR_FIELDS}, tick, op, purged) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[...pillarColumns(row), row.op, row.purged ? 1 : 0],
      ),
  },
  outbox: {
    select: {
      sql: 'SELECT * FROM outbox WHERE (tick, idx) > (?, ?) ORDER BY tick, idx',
      first: [0, -1],
      keyOf: (row) => [row.tick, row.index],
    },
    toRow: rows.toOutboxRow,
    insert: (db, { tick, index, timeMs, type, subject, data }) =>
      db.run(
        'INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?)',
        ...[tick, index, timeMs, type, subject, canonicalText(data)],
      ),
  },
  answers: {
    select: {
      sql: 'SELECT * FROM idempotency WHERE scope > ? ORDER BY scope',
      first: [''],
      keyOf: (row) => [row.scope],
    },
    toRow: ({ scope, fingerprint, response, tick, expires_at_ms: expiresAtMs }: rows.AnswerRow) => ({
      ...{ scope, fingerprint, response: rows.readValue(response), tick, expiresAtMs },
    }),
    insert: (db, { scope, fingerprint, response, tick, expiresAtMs }) =>
      db.run(
        'INSERT INTO idempotency VALUES (?, ?, ?, ?, ?)',
        ...[scope, fingerprint, canonicalText(response), tick, expiresAtMs],
      ),
  },
  fences: {
    select: {
      sql: 'SELECT name, fence FROM leases WHERE name > ? ORDER BY name',
      first: [''],
      keyOf: (row) => [row.name],
    },
    toRow: ({ name, fence }: { name: string; fence: number }) => ({ name, fence }),
    insert: (db, { name, fence }) => db.run("INSERT INTO leases VALUES (?, '', ?, 0)", name, fence),
  },
  ...TASK_IO,
  inventories: INVENTORY_IO,
  services: SERVICE_IO,
};

function pillarColumns(row: PillarRecord): SQLInputValue[] {
  return [
    ...[row.pid, row.tgtType, row.tgtId, row.name, row.pillarenv, canonicalText(row.value)],
    ...[row.isSecret ? 1 : 0, row.createdBy, row.updatedBy, row.createdAtMs, row.updatedAtMs, row.tick],
  ];
}

function insertMinion(db: Db, minion: ArchiveRows['minions']): void {
  const { master, id, registeredBy, tick } = minion;
  const sql = 'INSERT INTO minions (master, id, registered_by, tick) VALUES (?, ?, ?, ?)';
  db.run(sql, master, id, registeredBy, tick);
  rows.insertMemberships(db, minion);
}

/** Opens an estate file to be read whole, as it is at this moment. @throws ColonnadeError unavailable | misconfigured */
export async function openSqliteSource(path: string): Promise<ArchiveSource> {
  const db = guard(() => openReadOnly(path, BUSY_TIMEOUT_MS));
  return {
    // Each look at the clock begins a new moment, so that the last one shows what was written since the first.
    async readClock() {
      const { incarnation, tick } = guard(() => {
        if (db.inTransaction) db.exec('ROLLBACK');
        db.exec('BEGIN');
        return readClock(db);
      });
      return { incarnation, tick };
    },
    async readMarks() {
      return guard(() => ({
        ...{ historyFloor: readHistoryFloor(db), closedKids: readClosedKids(db), rewrap: readRewrap(db) },
      }));
    },
    readRows: createReadRows(db),
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}

/**
 * Opens a new or empty estate file to be filled. All of it is one transaction, so what is cut short leaves it empty.
 * @throws ColonnadeError conflict (not empty) | unavailable | misconfigured
 */
export async function openSqliteTarget(path: string): Promise<ArchiveTarget> {
  const options = { path, busyTimeoutMs: BUSY_TIMEOUT_MS, newIncarnation: false, maxBytes: undefined };
  const db = guard(() => openForWriting(options));
  try {
    guard(() => db.exec('BEGIN IMMEDIATE; PRAGMA defer_foreign_keys = ON'));
    guard(() => checkEmpty(db));
  } catch (thrown) {
    db.close();
    throw thrown;
  }
  return {
    async append(table, given) {
      guard(() => {
        for (const row of given) IO[table].insert(db, row);
      });
    },
    readRows: createReadRows(db),
    async finish(tick, { historyFloor, closedKids, rewrap }) {
      const incarnation = randomUUID();
      guard(() => {
        db.run(
          'UPDATE meta SET incarnation = ?1, tick = ?2, changes_floor = ?2, history_floor = ?3, history_floor_ms = ?4, closed_kids = ?5',
          ...[incarnation, tick, historyFloor.tick, historyFloor.atMs, JSON.stringify(closedKids)],
        );
        if (rewrap !== undefined) writeRewrap(db, rewrap);
        db.exec('COMMIT');
      });
      return { incarnation, tick };
    },
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}

function createReadRows(db: Db): ReadRows {
  return async function* <T extends ArchiveTable>(table: T) {
    const { select, toRow } = IO[table];
    for (let after = select.first; ; ) {
      const found = guard(() => db.all(`${select.sql} LIMIT ${ARCHIVE_CHUNK}`, ...after).map(toRow as never));
      const last = found.at(-1) as ArchiveRows[T] | undefined;
      if (last === undefined) return;
      yield found as ArchiveRows[T][];
      after = select.keyOf(last);
    }
  };
}

function checkEmpty(db: Db): void {
  const isEmpty = ARCHIVE_TABLES.every((table) => {
    const { sql, first } = IO[table].select;
    return db.get(`${sql} LIMIT 1`, ...first) === undefined;
  });
  if (isEmpty && readClock(db).tick === 0) return;
  throw new ColonnadeError('conflict', 'the place to copy into holds an estate already');
}

function guard<T>(run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    throw toStoreError(thrown);
  }
}
