import type { SQLInputValue } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { EstateView, ViewRows } from '../port-bulk.ts';
import { toStoreError } from './errors.ts';
import { INVENTORY_IO } from './inventories.ts';
import { openReadOnly, readClock } from './read-connection.ts';
import * as rows from './rows.ts';
import { SERVICE_IO } from './services.ts';
import { TASK_IO } from './task-archive.ts';

const PAGE_ROWS = 100;

type Key = SQLInputValue[];
type Io<R> = { sql: string; first: Key; keyOf: (row: R) => Key; toRow: (found: never) => R };

const IO: { readonly [K in keyof ViewRows]: Io<ViewRows[K]> } = {
  collections: {
    sql: 'SELECT * FROM collections WHERE id > ? ORDER BY id',
    first: [''],
    keyOf: ({ id }) => [id],
    toRow: rows.toCollection,
  },
  masters: {
    sql: 'SELECT * FROM masters WHERE id > ? ORDER BY id',
    first: [''],
    keyOf: ({ id }) => [id],
    toRow: rows.toMaster,
  },
  minions: {
    sql: `${rows.SELECT_MINION} WHERE (m.master, m.id) > (?, ?) ORDER BY m.master, m.id`,
    first: ['', ''],
    keyOf: ({ master, id }) => [master, id],
    toRow: rows.toMinion,
  },
  inventories: { ...INVENTORY_IO.select, toRow: INVENTORY_IO.toRow },
  templates: { ...TASK_IO.templates.select, toRow: TASK_IO.templates.toRow },
  tasks: { ...TASK_IO.tasks.select, toRow: TASK_IO.tasks.toRow },
  services: { ...SERVICE_IO.select, toRow: SERVICE_IO.toRow },
  pillars: {
    sql: `SELECT * FROM pillars WHERE (tgt_type, tgt_id, name, pillarenv) > (?, ?, ?, ?)
      ORDER BY tgt_type, tgt_id, name, pillarenv`,
    first: ['', '', '', ''],
    keyOf: ({ tgtType, tgtId, name, pillarenv }) => [tgtType, tgtId, name, pillarenv],
    toRow: rows.toPillar,
  },
};

/**
 * A read transaction on a connection of its own: it sees one moment, and the WAL keeps growing while it is open, so
 * whoever opens one must end it.
 */
export function openView(path: string, busyTimeoutMs: number): EstateView {
  const db = guard(() => openReadOnly(path, busyTimeoutMs));
  const clock = guard(() => {
    db.exec('BEGIN');
    return readClock(db);
  });
  const { incarnation, tick } = clock;
  return {
    clock: { incarnation, tick },
    async *pages<K extends keyof ViewRows>(table: K) {
      const { sql, first, keyOf, toRow } = IO[table] as Io<ViewRows[K]>;
      for (let after = first; ; ) {
        const page = guard(() =>
          db.all(`${sql} LIMIT ${PAGE_ROWS}`, ...after).map(toRow as never),
        ) as never[];
        if (page.length > 0) yield page;
        const last = page.at(-1);
        if (last === undefined || page.length < PAGE_ROWS) return;
        after = keyOf(last);
        // A page is read at once; between two of them others get their turn.
        await setImmediate();
      }
    },
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}

function guard<T>(run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    throw toStoreError(thrown);
  }
}
