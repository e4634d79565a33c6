import type { Touched, TouchedMinion } from '@colonnade/contracts';
import type { Database } from './database.ts';

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

export type Pending = {
  /** What `end` takes away; changes that come meanwhile join the next generation. */
  upTo: number;
  touched: readonly Touched[];
  /** Policies are written whether they changed or not. */
  rewrite: boolean;
};

export type MinionName = { master: string; id: string };
export type Swapped = { minion: TouchedMinion; digest: string };

/** As it stands in the tables, in records and in failures. */
export const nameOf = ({ master, id }: MinionName) => `${master}/${id}`;
/** Neither id can hold a slash. */
export const minionNamed = (name: string): MinionName => {
  const [master = '', id = ''] = name.split('/');
  return { master, id };
};

/** What is to be generated, what has been, and what is in force. Every write is under the fence of the leader. */
export type GenerationStore = {
  touch(touched: Touched, rewrite?: boolean): void;
  pending(): Pending | undefined;
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
  /** With what has to be tried again, in the same transaction. */
  end(record: GenerationRecord, upTo: number | undefined, again: readonly Touched[]): void;
  /** Newest first; those before one of them. */
  history(limit: number, before?: string): readonly GenerationRecord[];
  find(id: string): GenerationRecord | undefined;
  forgetBefore(ms: number): void;
};

export function createGenerationStore(db: Database, write: (work: () => void) => void): GenerationStore {
  const add = (touched: Touched, rewrite: boolean) =>
    db.run('INSERT INTO touches (touched, rewrite) VALUES (?, ?)', JSON.stringify(touched), rewrite ? 1 : 0);
  return {
    touch: (touched, rewrite = false) => write(() => add(touched, rewrite)),
    pending() {
      const rows = db.all<{ id: number; touched: string; rewrite: number }>(
        'SELECT * FROM touches ORDER BY id',
      );
      const last = rows.at(-1);
      if (last === undefined) return undefined;
      const touched = [...new Set(rows.map((row) => row.touched))].map((text) => JSON.parse(text) as Touched);
      return { upTo: last.id, touched, rewrite: rows.some(({ rewrite }) => rewrite === 1) };
    },
    ...policiesOf(db, write),
    doubt: (minions) =>
      write(() => {
        dropDigests(db, minions);
        for (const { master, id } of minions) add({ kind: 'minion', master, id }, false);
      }),
    end: (record, upTo, again) =>
      write(() => {
        db.run(
          'INSERT OR REPLACE INTO generations (id, record) VALUES (?, ?)',
          record.id,
          JSON.stringify(record),
        );
        db.run('DELETE FROM touches WHERE id <= ?', upTo ?? 0);
        db.run('DELETE FROM swapped');
        for (const touched of again) add(touched, false);
      }),
    history: (limit, before = '~') =>
      db
        .all<{ record: string }>(
          'SELECT record FROM generations WHERE id < ? ORDER BY id DESC LIMIT ?',
          before,
          limit,
        )
        .map(({ record }) => JSON.parse(record) as GenerationRecord),
    find(id) {
      const row = db.get<{ record: string }>('SELECT record FROM generations WHERE id = ?', id);
      return row === undefined ? undefined : (JSON.parse(row.record) as GenerationRecord);
    },
    forgetBefore: (ms) =>
      write(() => db.run('DELETE FROM generations WHERE id < ?', new Date(ms).toISOString())),
  };
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
        for (const table of ['policies', 'swapped']) {
          db.run(`DELETE FROM ${table} WHERE minion = ?`, nameOf(minion));
        }
      }),
  };
}
