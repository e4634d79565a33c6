import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';
import { MongoError, MongoServerError } from 'mongodb';

const DUPLICATE_KEY = 11000;
const WRITE_CONFLICT = 112;
const LOCK_TIMEOUT = 24;

export const OTHER_INDEX =
  'an index of another program, with other options, stands where ours must be: drop it';

/** Codes of the server (its error_codes.yml) that no retry mends, with what they become. */
const BY_CODE = new Map<number, { code: ErrorCode; message: string }>([
  [13, { code: 'misconfigured', message: 'the user of the database lacks a right' }],
  [18, { code: 'misconfigured', message: 'the database refuses the user or the password' }],
  [73, { code: 'misconfigured', message: 'the name of a database or collection cannot be used' }],
  [85, { code: 'misconfigured', message: OTHER_INDEX }],
  [86, { code: 'misconfigured', message: OTHER_INDEX }],
  [10334, { code: 'too_large', message: 'a document would be larger than the database takes' }],
  [17419, { code: 'too_large', message: 'a document would be larger than the database takes' }],
  [17420, { code: 'too_large', message: 'a document would be larger than the database takes' }],
  [DUPLICATE_KEY, { code: 'already_exists', message: 'a record with this key exists' }],
]);

/** Codes by which the server says: not now, or not here. */
const UNAVAILABLE: ReadonlySet<number> = new Set([
  ...[6, 7, 24, 50, 64, 75, 79, 89, 91, 112, 134, 189, 202, 225, 234, 239, 246, 251, 262, 290, 317, 365],
  ...[9001, 10058, 10107, 11600, 11601, 11602, 13388, 13435, 13436, 14031],
]);

/** Codes of Node.js about files that the driver reads itself, which are those of TLS. */
const FAULT_OF_FILES = /^(?:ENOENT|EACCES|EPERM|EISDIR|ENOTDIR|ERR_OSSL_\w+)$/u;
const FAULT_OF_NETWORK = /^(?:E[A-Z]+|ERR_STREAM_\w+|ERR_SOCKET_\w+)$/u;

/** Errors of the driver that are a mistake of ours; every other of its errors is about the way to the server. */
const FAULTS_OF_OURS: ReadonlySet<string> = new Set([
  ...['MongoInvalidArgumentError', 'MongoParseError', 'MongoMissingDependencyError', 'MongoTransactionError'],
  ...['MongoCompatibilityError', 'MongoBatchReExecutionError', 'MongoTailableCursorError'],
]);

/**
 * Turns anything thrown below the adapter's edge into a ColonnadeError: ours stay, what the server or the way to it
 * cannot do now becomes `unavailable`. Messages of the server are dropped, since they repeat keys and documents.
 */
export function toMongoStoreError(thrown: unknown): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  const { code, message } = classify(thrown);
  return new ColonnadeError(code, message, { cause: describe(thrown) });
}

function classify(thrown: unknown): { code: ErrorCode; message: string } {
  if (thrown instanceof MongoServerError) {
    const known = BY_CODE.get(codeOf(thrown));
    if (known !== undefined) return known;
    if (UNAVAILABLE.has(codeOf(thrown)) || isTransient(thrown) || isCommitUnknown(thrown)) {
      return { code: 'unavailable', message: 'the database cannot do this now' };
    }
    return { code: 'internal', message: `the database failed (${String(thrown.code)})` };
  }
  if (thrown instanceof MongoError && !FAULTS_OF_OURS.has(thrown.name)) {
    return { code: 'unavailable', message: 'the database cannot be reached' };
  }
  const { code } = (thrown ?? {}) as { code?: unknown };
  if (typeof code !== 'string')
    return { code: 'internal', message: 'an unexpected fault in the estate store' };
  if (FAULT_OF_FILES.test(code)) {
    return { code: 'misconfigured', message: `the TLS files of MongoDB cannot be used (${code})` };
  }
  // The driver wraps what the network says, but not while a connection is being made and breaks in between.
  if (FAULT_OF_NETWORK.test(code)) return { code: 'unavailable', message: 'the database cannot be reached' };
  return { code: 'internal', message: 'an unexpected fault in the estate store' };
}

/** What may be logged of it: never a document, a key or what the server wrote about them. */
function describe(thrown: unknown): Error {
  if (thrown instanceof MongoServerError) {
    return new Error(`${thrown.codeName ?? thrown.name} (${String(thrown.code)})`);
  }
  return thrown instanceof Error ? new Error(`${thrown.name}: ${thrown.message}`) : new Error('not an error');
}

/** The whole transaction may be tried again. */
function isTransient(thrown: unknown): boolean {
  return thrown instanceof MongoError && thrown.hasErrorLabel('TransientTransactionError');
}

/** The commit may be asked for again; whether it took place is not known. */
export function isCommitUnknown(thrown: unknown): boolean {
  return thrown instanceof MongoError && thrown.hasErrorLabel('UnknownTransactionCommitResult');
}

/** Another transaction has written the same document. */
export function isConflict(thrown: unknown): boolean {
  return [WRITE_CONFLICT, LOCK_TIMEOUT].includes(codeOf(thrown));
}

/** The fields of the unique index that an insert broke; undefined for any other error. */
export function brokenKey(thrown: unknown): readonly string[] | undefined {
  if (codeOf(thrown) !== DUPLICATE_KEY) return undefined;
  return Object.keys((thrown as { keyPattern?: object }).keyPattern ?? {});
}

/** Where numbers keep their kinds, the driver gives the code as an Int32. */
function codeOf(thrown: unknown): number {
  return thrown instanceof MongoServerError ? Number(thrown.code) : Number.NaN;
}

const OUTDATED = Symbol('outdated');

/** What was read misses a write that is acknowledged, as on a primary that has been replaced without noticing. */
export function outdated(): ColonnadeError {
  return new ColonnadeError('unavailable', 'the database answers from an older state', { cause: OUTDATED });
}

/** Whether another attempt may well succeed. */
export function isWorthRetrying(thrown: unknown): boolean {
  return isTransient(thrown) || (thrown instanceof ColonnadeError && thrown.cause === OUTDATED);
}
