import { ColonnadeError } from '@colonnade/contracts';
import type { Expect } from '../port.ts';

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

/** To delete what must be absent is a mistake of the caller. @throws ColonnadeError bad_request */
export function checkDeletable(expect: Expect): void {
  if (expect !== 'absent') return;
  throw new ColonnadeError('bad_request', 'a delete cannot expect the record to be absent');
}

/** @throws ColonnadeError precondition_failed */
export function checkUnchanged(isUnchanged: boolean): void {
  if (isUnchanged) return;
  throw new ColonnadeError(
    'precondition_failed',
    'the scope has changed meanwhile, or it is too long ago to tell',
  );
}

/** Nothing is deleted while something hangs on it. @throws ColonnadeError conflict that names what does */
export function checkFree(what: string, hanging: Readonly<Record<string, boolean>>): void {
  for (const [name, isThere] of Object.entries(hanging)) {
    if (isThere) throw new ColonnadeError('conflict', `the ${what} has ${name}`);
  }
}
