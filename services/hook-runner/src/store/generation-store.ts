import type { Touched, TouchedMinion } from '@colonnade/contracts';
import type { Database } from './database.ts';
import { type MinionName, minionNamed, nameOf } from './minion-name.ts';
import { createTouches, type Pending, touchOf } from './touches.ts';

/** How one generation went. */
export type GenerationRecord = {
  /** When it began, ISO 8601; no two have the same. */
  id: string;
  endedAt: string;
  status: 'finished' | 'failed';
  /** Of the minions whose policies changed: `master/id`. */
  updated: readonly string[];
  failed: readonly { minion: string; reason: string }[];
  reason: string | undefined;
};

/** A generation without the names of its minions, which may be all of the estate. */
export type GenerationSummary = Omit<GenerationRecord, 'updated' | 'failed'> & {
  updatedCount: number;
  failedCount: number;
};

/** A minion that is to be tried again. @property gone its folder could not be removed */
export type Again = { minion: MinionName; inMs: number; tries: number; gone: boolean };

export type Swapped = { minion: TouchedMinion; digest: string };

/** What is to be generated, what has been, and what is in force. Every write is under the fence of the leader. */
export type GenerationStore = {
  /** All of them in one transaction: an import may touch thousands, and each transaction waits for the disk. */
  touch(touched: readonly Touched[], how?: { rewrite?: boolean; gone?: boolean }): void;
  /** What is due. */
  pending(): Pending | undefined;
  /** Milliseconds until the next minion is tried again; undefined: none waits. */
  dueInMs(): number | undefined;
  /** Digests of the policies in force, by `master/id`; none where nobody knows, as in the middle of a swap. */
  digestsOf(minions: readonly MinionName[]): ReadonlyMap<string, string>;
  /** Of all minions. */
  digests(): ReadonlyMap<string, string>;
  /** What is noted of them is not what is there: nobody knows what is, and they are to be generated. */
  doubt(minions: readonly MinionName[]): void;
  /**
   * Their policies are about to be swapped: until `swapped` is noted nobody knows which ones are in force.
   * @throws ColonnadeError `conflict`: another leads now, and nothing may be put into force
   */
  beginSwap(minions: readonly MinionName[]): void;
  /** Their new policies are in force. @param owed the generation whose node-finished hooks still have to run for them */
  noteSwapped(swapped: readonly Swapped[], owed: string | undefined): void;
  /** Minions with new policies of which no generation that ended has told, those of broken ones too. */
  swapped(): readonly TouchedMinion[];
  /** Those among them whose node-finished hooks have not run to their end, and of which generation. */
  owed(): readonly { minion: TouchedMinion; generation: string }[];
  /** They have. */
  noteFinished(minion: MinionName): void;
  forget(minion: MinionName): void;
  /**
   * In one transaction: what became of it, what it was for (undefined: that stays to be done), whom it has looked at, so that they
   * need not be tried again for an earlier failure, and who has to be.
   */
  end(
    record: GenerationRecord,
    pending: Pending | undefined,
    lookedAt: readonly MinionName[],
    again: readonly Again[],
  ): void;
  /**
   * Notes that these folders are nobody's, and no others.
   * @returns those that have been for so long
   */
  lost(minions: readonly MinionName[], forMs: number): readonly MinionName[];
  /** Newest first; those before one of them. */
  history(limit: number, before?: string): readonly GenerationSummary[];
  find(id: string): GenerationRecord | undefined;
  forgetBefore(ms: number): void;
};

export function createGenerationStore(
  db: Database,
  write: (work: () => void) => void,
  nowMs: () => number,
): GenerationStore {
  const touches = createTouches(db, nowMs);
  return {
    touch: (touched, how) =>
      write(() => {
        for (const one of touched) touches.add(one, how);
      }),
    pending: touches.pending,
    dueInMs: touches.dueInMs,
    ...policiesOf(db, write),
    lost: (minions, forMs) => noteLost(db, write, minions, nowMs(), forMs),
    doubt: (minions) =>
      write(() => {
        dropDigests(db, minions);
        for (const minion of minions) touches.add(touchOf(minion));
      }),
    end: (record, pending, lookedAt, again) =>
      write(() => {
        db.run(
          'INSERT OR REPLACE INTO generations (id, record) VALUES (?, ?)',
          record.id,
          JSON.stringify(record),
        );
        if (pending !== undefined) touches.drop(pending, lookedAt);
        db.run('DELETE FROM swapped');
        for (const { minion, inMs, ...how } of again) touches.add(touchOf(minion), { ...how, inMs });
      }),
    ...recordsOf(db),
    forgetBefore: (ms) =>
      write(() => db.run('DELETE FROM generations WHERE id < ?', new Date(ms).toISOString())),
  };
}

function recordsOf(db: Database): Pick<GenerationStore, 'history' | 'find'> {
  return {
    history: (limit, before = '~') =>
      db
        .all<Omit<GenerationSummary, 'reason'> & { reason: string | null }>(
          // A record of a large estate is most of a MiB: hundreds of them are not for this process.
          `SELECT id, record ->> '$.endedAt' AS endedAt, record ->> '$.status' AS status, record ->> '$.reason' AS reason,
             json_array_length(record, '$.updated') AS updatedCount, json_array_length(record, '$.failed') AS failedCount
           FROM generations WHERE id < ? ORDER BY id DESC LIMIT ?`,
          ...[before, limit],
        )
        .map(({ reason, ...row }) => ({ ...row, reason: reason ?? undefined })),
    find(id) {
      const row = db.get<{ record: string }>('SELECT record FROM generations WHERE id = ?', id);
      return row === undefined ? undefined : (JSON.parse(row.record) as GenerationRecord);
    },
  };
}

function noteLost(
  db: Database,
  write: (work: () => void) => void,
  minions: readonly MinionName[],
  nowMs: number,
  forMs: number,
): readonly MinionName[] {
  const names = JSON.stringify(minions.map(nameOf));
  write(() => {
    db.run('DELETE FROM lost WHERE minion NOT IN (SELECT value FROM json_each(?))', names);
    db.run('INSERT OR IGNORE INTO lost (minion, since_ms) SELECT value, ? FROM json_each(?)', nowMs, names);
  });
  const rows = db.all<{ minion: string }>('SELECT minion FROM lost WHERE since_ms <= ?', nowMs - forMs);
  return rows.map(({ minion }) => minionNamed(minion));
}

type PolicyParts =
  | 'digestsOf'
  | 'digests'
  | 'beginSwap'
  | 'noteSwapped'
  | 'swapped'
  | 'owed'
  | 'noteFinished'
  | 'forget';

type Noted = { minion: string; digest: string };
const digestsIn = (rows: readonly Noted[]) => new Map(rows.map(({ minion, digest }) => [minion, digest]));

function dropDigests(db: Database, minions: readonly MinionName[]): void {
  for (const minion of minions) db.run('DELETE FROM policies WHERE minion = ?', nameOf(minion));
}

function policiesOf(db: Database, write: (work: () => void) => void): Pick<GenerationStore, PolicyParts> {
  const swapped = (where: string) =>
    db
      .all<{ facts: string; owed: string | null }>(`SELECT facts, owed FROM swapped ${where} ORDER BY rowid`)
      .map(({ facts, owed }) => ({ minion: JSON.parse(facts) as TouchedMinion, generation: owed ?? '' }));
  return {
    digestsOf(minions) {
      const rows = db.all<Noted>(
        'SELECT minion, digest FROM policies WHERE minion IN (SELECT value FROM json_each(?))',
        JSON.stringify(minions.map(nameOf)),
      );
      return digestsIn(rows);
    },
    digests: () => digestsIn(db.all<Noted>('SELECT minion, digest FROM policies')),
    beginSwap: (minions) => write(() => dropDigests(db, minions)),
    noteSwapped: (minions, owed) =>
      write(() => {
        for (const { minion, digest } of minions) {
          const name = nameOf(minion);
          db.run('INSERT OR REPLACE INTO policies (minion, digest) VALUES (?, ?)', name, digest);
          db.run(
            'INSERT OR REPLACE INTO swapped (minion, facts, owed) VALUES (?, ?, ?)',
            ...[name, JSON.stringify(minion), owed ?? null],
          );
        }
      }),
    swapped: () => swapped('').map(({ minion }) => minion),
    owed: () => swapped('WHERE owed IS NOT NULL'),
    noteFinished: (minion) =>
      write(() => db.run('UPDATE swapped SET owed = NULL WHERE minion = ?', nameOf(minion))),
    forget: (minion) =>
      write(() => {
        for (const table of ['policies', 'swapped', 'lost']) {
          db.run(`DELETE FROM ${table} WHERE minion = ?`, nameOf(minion));
        }
      }),
  };
}
