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

/** What is to be generated, what has been, and what is in force. Every write is under the fence of the leader. */
export type GenerationStore = {
  touch(touched: Touched, rewrite?: boolean): void;
  pending(): Pending | undefined;
  /** Digest of the policies of a minion that are in force. */
  digestOf(minion: string): string | undefined;
  /** Its new policies are in force. */
  setDigest(minion: TouchedMinion, digest: string): void;
  /** Minions with new policies of which no generation that ended has told, those of broken ones too. */
  swapped(): readonly TouchedMinion[];
  forget(minion: string): void;
  /** @throws ColonnadeError `conflict`: another leads now, and nothing may be put into force */
  checkLead(): void;
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
    digestOf: (minion) =>
      db.get<{ digest: string }>('SELECT digest FROM policies WHERE minion = ?', minion)?.digest,
    setDigest: (minion, digest) =>
      write(() => {
        const name = `${minion.master}/${minion.id}`;
        db.run('INSERT OR REPLACE INTO policies (minion, digest) VALUES (?, ?)', name, digest);
        db.run('INSERT OR REPLACE INTO swapped (minion, facts) VALUES (?, ?)', name, JSON.stringify(minion));
      }),
    swapped: () =>
      db
        .all<{ facts: string }>('SELECT facts FROM swapped ORDER BY rowid')
        .map(({ facts }) => JSON.parse(facts) as TouchedMinion),
    forget: (minion) =>
      write(() => {
        for (const table of ['policies', 'swapped']) db.run(`DELETE FROM ${table} WHERE minion = ?`, minion);
      }),
    checkLead: () => write(() => {}),
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
