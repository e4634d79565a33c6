import { ColonnadeError } from '@colonnade/contracts';

/** @throws ColonnadeError bad_request */
export function checkTtl(ttlMs: number): void {
  if (Number.isSafeInteger(ttlMs) && ttlMs > 0) return;
  throw new ColonnadeError('bad_request', 'a lease needs a time to live in whole milliseconds', {
    field: 'ttlMs',
  });
}

/** Only the newest fence counts. @throws ColonnadeError conflict */
export function checkFence(isNewest: boolean): void {
  if (!isNewest) throw new ColonnadeError('conflict', 'another holder has the lease');
}
