import { ColonnadeError } from '@colonnade/contracts';

/** What If-Match and If-None-Match say. */
export type Conditions = { ifMatch: '*' | readonly string[] | undefined; ifNoneMatch: '*' | undefined };

/**
 * The ETag of a record: who it is, in which life of the estate, at which tick it changed last. A record that is made
 * again has another pid or a later tick, and a restored estate has another incarnation, so none ever comes twice.
 */
export function etagOf(id: string, incarnation: string, tick: number): string {
  return `"${encodeURIComponent(id)}.${incarnation.slice(0, 8)}.${tick}"`;
}

const TAG_LIST = /^(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*$/u;

/** Reads the two headers. @throws ColonnadeError `bad_request` */
export function readConditions(ifMatch: string | undefined, ifNoneMatch: string | undefined): Conditions {
  if (ifNoneMatch !== undefined && ifNoneMatch.trim() !== '*') {
    throw new ColonnadeError('bad_request', 'only If-None-Match: * is supported', { field: 'If-None-Match' });
  }
  return {
    ifMatch: ifMatch === undefined ? undefined : readTags(ifMatch.trim()),
    ifNoneMatch: ifNoneMatch === undefined ? undefined : '*',
  };
}

function readTags(text: string): '*' | readonly string[] {
  if (text === '*') return '*';
  if (!TAG_LIST.test(text)) {
    throw new ColonnadeError('bad_request', 'If-Match is not a list of quoted ETags', { field: 'If-Match' });
  }
  return text.split(/\s*,\s*/u);
}

/** @throws ColonnadeError `precondition_required` without If-Match */
export function requireIfMatch(conditions: Conditions): void {
  if (conditions.ifMatch !== undefined) return;
  const how = 'send If-Match with the ETag you have read, so that you overwrite only what you have seen';
  throw new ColonnadeError('precondition_required', how, { field: 'If-Match' });
}

/** Weak tags never match (RFC 9110, strong comparison). @throws ColonnadeError `precondition_required` or `precondition_failed` */
export function checkIfMatch(conditions: Conditions, etag: string): void {
  requireIfMatch(conditions);
  if (conditions.ifMatch === '*' || conditions.ifMatch?.includes(etag)) return;
  throw new ColonnadeError('precondition_failed', 'it has changed since you read it: read it again', {
    field: 'If-Match',
  });
}

/** What a create refused as `already_exists` is to a client that sent If-None-Match: *. */
export function asFailedCreate(thrown: unknown, conditions: Conditions): unknown {
  if (conditions.ifNoneMatch === undefined || !(thrown instanceof ColonnadeError)) return thrown;
  if (thrown.code !== 'already_exists') return thrown;
  return new ColonnadeError('precondition_failed', thrown.message, { field: 'If-None-Match', cause: thrown });
}
