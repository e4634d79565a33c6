import { ColonnadeError } from '@colonnade/contracts';
import type { ChangeKey, Expect } from '../port.ts';
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

/**
 * Checks a record's tick against what the caller expects of it.
 * @throws ColonnadeError already_exists | not_found | precondition_failed
 */
export function checkExpect(what: string, found: { tick: number } | undefined, expect: Expect): void {
  if (expect === 'absent') {
    if (found !== undefined) throw new ColonnadeError('already_exists', `the ${what} exists`);
    return;
  }
  if (found === undefined) throw new ColonnadeError('not_found', `no such ${what}`);
  if (expect !== undefined && expect !== found.tick) {
    throw new ColonnadeError('precondition_failed', `the ${what} has changed meanwhile`);
  }
}

/** True when the query, which selects anything, has a row. */
export function hasRow(db: Db, sql: string, ...params: string[]): boolean {
  return db.get(sql, ...params) !== undefined;
}
