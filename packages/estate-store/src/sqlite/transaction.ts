import type { ChangeKey } from '../port.ts';
import type { Db } from './connection.ts';

/** What a mutation gets: the open transaction and what is the same for the whole batch. */
export type Tx = {
  db: Db;
  /** The tick this batch makes. */
  tick: number;
  by: string;
  atMs: number;
  /** Files the change, so that readers drop exactly what they cached under this key. */
  change(key: ChangeKey): void;
};

/** True when the query, which selects anything, has a row. */
export function hasRow(db: Db, sql: string, ...params: string[]): boolean {
  return db.get(sql, ...params) !== undefined;
}
