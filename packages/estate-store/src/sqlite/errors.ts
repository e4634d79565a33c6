import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';

/** Primary result codes of SQLite (https://sqlite.org/rescode.html) that say: not now, or not with this file. */
const UNAVAILABLE = new Map<number, string>([
  [3, 'access to the estate file is denied'],
  [5, 'the estate file is locked by another writer'],
  [6, 'the estate file is locked'],
  [7, 'the estate store is out of memory'],
  [8, 'the estate file is read-only'],
  [9, 'the operation was interrupted'],
  [10, 'the disk of the estate file failed'],
  [11, 'the estate file is corrupt'],
  [13, 'the disk of the estate file is full'],
  [14, 'the estate file cannot be opened'],
  [15, 'the locks of the estate file cannot be taken'],
  [17, 'the schema of the estate file changed meanwhile'],
  [22, 'the estate file needs a feature this host lacks'],
  [23, 'access to the estate file is denied'],
  [26, 'the estate file is not a database'],
]);

const CONSTRAINT_PRIMARYKEY = 1555;
const CONSTRAINT_UNIQUE = 2067;

/**
 * Turns anything thrown below the adapter's edge into a ColonnadeError: ours stay, what SQLite or the file system
 * says becomes `unavailable`, a broken unique key `already_exists`, and the rest `internal`.
 */
export function toStoreError(thrown: unknown): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  const { code, message } = classify(thrown);
  return new ColonnadeError(code, message, { cause: thrown });
}

function classify(thrown: unknown): { code: ErrorCode; message: string } {
  const { errcode, code } = readFields(thrown);
  if (typeof errcode === 'number') {
    if (errcode === CONSTRAINT_UNIQUE || errcode === CONSTRAINT_PRIMARYKEY) {
      return { code: 'already_exists', message: 'a record with this key exists' };
    }
    const reason = UNAVAILABLE.get(errcode & 0xff);
    if (reason !== undefined) return { code: 'unavailable', message: reason };
    return { code: 'internal', message: `the estate store failed (SQLite ${errcode})` };
  }
  if (typeof code === 'string' && /^E[A-Z0-9]+$/u.test(code) && !code.startsWith('ERR_')) {
    return { code: 'unavailable', message: `the estate file cannot be reached (${code})` };
  }
  if (code === 'ERR_INVALID_STATE') return { code: 'unavailable', message: 'the estate store is closed' };
  return { code: 'internal', message: 'an unexpected fault in the estate store' };
}

function readFields(thrown: unknown): { errcode?: unknown; code?: unknown } {
  return typeof thrown === 'object' && thrown !== null ? thrown : {};
}

/** An error as it crosses from the writer's thread: structured clone would lose its class. */
export type ErrorMessage = {
  code: ErrorCode;
  message: string;
  field: string | undefined;
  cause: string | undefined;
};

export function packError(thrown: unknown): ErrorMessage {
  const { code, message, field, cause } = toStoreError(thrown);
  return { code, message, field, cause: cause instanceof Error ? cause.message : undefined };
}

export function unpackError(packed: ErrorMessage): ColonnadeError {
  return new ColonnadeError(packed.code, packed.message, {
    ...(packed.field === undefined ? {} : { field: packed.field }),
    ...(packed.cause === undefined ? {} : { cause: new Error(packed.cause) }),
  });
}
