import { type BulkRecord, ColonnadeError } from '@colonnade/contracts';

type Mark = Extract<BulkRecord, { kind: 'estate' }>;

/** Since this version an export ends with the number of its records. */
export const MARKED_VERSION = 2;

/** Tells an export that came whole from one that was cut between two records, which nothing else in it would tell. */
export type Wholeness = {
  /** A record that is no mark, readable or not. @throws ColonnadeError `unprocessable` */
  count(): void;
  /** A record of kind `estate`. @throws ColonnadeError `unprocessable` */
  mark(record: Mark): void;
  /** The end of the file. @throws ColonnadeError `unprocessable` */
  end(): void;
};

/**
 * Between the mark an export begins with and the one it ends with stand as many records as the latter says. What people
 * write has no marks, and an export of version 1 none at its end: neither is held to any. One export may follow another.
 */
export function createWholeness(): Wholeness {
  let state: 'free' | 'open' | 'closed' = 'free';
  let records = 0;
  return {
    count() {
      if (state === 'closed') throw refuse('it stands behind the end of the export');
      records += 1;
    },
    mark({ version, records: said }) {
      if (version < MARKED_VERSION) {
        if (state === 'open') throw refuse('an export begins before the one before it has ended');
        return;
      }
      if (said === undefined) {
        if (state === 'open') throw refuse('an export begins before the one before it has ended');
        state = 'open';
        records = 0;
        return;
      }
      if (state !== 'open') throw refuse('the end of an export whose beginning is not there');
      state = 'closed';
      if (said === records) return;
      throw refuse(`the export had ${said} records, and here are ${records}`);
    },
    end() {
      if (state !== 'open') return;
      throw refuse(`the file ends after ${records} records, without the end of its export: it was cut`);
    },
  };
}

const REMEDY = 'export again; to import a part on purpose, take the records of kind estate out';

function refuse(why: string): ColonnadeError {
  return new ColonnadeError('unprocessable', `${why}; ${REMEDY}`);
}
