import type { Touched } from '@colonnade/contracts';
import type { Database } from './database.ts';
import { type MinionName, nameOf } from './minion-name.ts';

export type Pending = {
  /** What `end` takes away: what was due then. Changes that come meanwhile join the next generation. */
  upTo: number;
  atMs: number;
  touched: readonly Touched[];
  /** Policies are written whether they changed or not. */
  rewrite: boolean;
  /** Minions that are told to be gone, and whose last hooks have ended: their folders may go. */
  gone: readonly MinionName[];
  /** How often minions have failed that wait to be tried again, by name, those that are not due among them. */
  tries: ReadonlyMap<string, number>;
};

/** @property inMs due after that, at once unless given @property tries how often the minion has failed @property gone it may lose its folder */
type How = { rewrite?: boolean; gone?: boolean; tries?: number; inMs?: number };
type Row = { id: number; touched: string; rewrite: number; tries: number; gone: number; due: number };

/** A clock that was set back must not keep a minion waiting: nobody waits longer than this. */
const LONGEST_WAIT_MS = 3_600_000;
const IS_DUE = `(due_ms <= ?1 OR due_ms > ?1 + ${LONGEST_WAIT_MS})`;

/** Whom changes concern, and who is tried again, until a generation that came to its end has taken them. Writes are the caller's transaction. */
export function createTouches(db: Database, nowMs: () => number) {
  return {
    add(touched: Touched, { rewrite = false, gone = false, tries = 0, inMs }: How = {}): void {
      const dueMs = inMs === undefined ? 0 : Math.ceil(nowMs() + inMs);
      // The same again takes its place, behind what a generation has taken meanwhile: while none comes to its end, it is one row still.
      if (inMs === undefined) {
        db.run(
          'DELETE FROM touches WHERE touched = ? AND rewrite = ? AND gone = ? AND tries = 0 AND due_ms = 0',
          ...[JSON.stringify(touched), rewrite ? 1 : 0, gone ? 1 : 0],
        );
      }
      db.run(
        'INSERT INTO touches (touched, rewrite, gone, tries, due_ms) VALUES (?, ?, ?, ?, ?)',
        ...[JSON.stringify(touched), rewrite ? 1 : 0, gone ? 1 : 0, tries, dueMs],
      );
    },
    pending(): Pending | undefined {
      const atMs = nowMs();
      const all = db.all<Row>(`SELECT *, ${IS_DUE} AS due FROM touches ORDER BY id`, atMs);
      return readPending(all, atMs);
    },
    dueInMs(): number | undefined {
      const sql = `SELECT min(due_ms) AS due FROM touches WHERE NOT ${IS_DUE}`;
      const due = db.get<{ due: number | null }>(sql, nowMs())?.due ?? undefined;
      return due === undefined ? undefined : due - nowMs();
    },
    /** Those a generation has taken, and minions it has looked at that would be tried again for an earlier failure. */
    drop({ upTo, atMs }: Pending, lookedAt: readonly MinionName[]): void {
      const texts = JSON.stringify(lookedAt.map((one) => JSON.stringify(touchOf(one))));
      db.run(
        `DELETE FROM touches WHERE id <= ?2 AND
           (${IS_DUE} OR (tries > 0 AND touched IN (SELECT value FROM json_each(?3))))`,
        ...[atMs, upTo, texts],
      );
    },
  };
}

/** As it stands in the table. */
export function touchOf({ master, id }: MinionName): Touched {
  return { kind: 'minion', master, id };
}

function readPending(all: readonly Row[], atMs: number): Pending | undefined {
  const rows = all.filter(({ due }) => due === 1);
  const last = all.at(-1);
  if (last === undefined || rows.length === 0) return undefined;
  const minionOf = ({ touched }: Row): MinionName[] => {
    const read = JSON.parse(touched) as Touched;
    return read.kind === 'minion' ? [{ master: read.master, id: read.id }] : [];
  };
  const failed = all.filter(({ tries }) => tries > 0);
  return {
    upTo: last.id,
    atMs,
    touched: [...new Set(rows.map(({ touched }) => touched))].map((text) => JSON.parse(text) as Touched),
    rewrite: rows.some(({ rewrite }) => rewrite === 1),
    gone: rows.filter(({ gone }) => gone === 1).flatMap(minionOf),
    tries: new Map(failed.flatMap((row) => minionOf(row).map((one) => [nameOf(one), row.tries] as const))),
  };
}
