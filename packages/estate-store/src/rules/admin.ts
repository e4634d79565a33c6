import { ColonnadeError } from '@colonnade/contracts';

/** @throws ColonnadeError conflict: the token is gone, expired or no admin's */
export function checkAdmin(
  token: { roles: readonly string[]; expiresAtMs: number | undefined } | undefined,
  atMs: number,
): void {
  const isLive = token !== undefined && (token.expiresAtMs === undefined || token.expiresAtMs > atMs);
  if (isLive && token.roles.includes('admin')) return;
  throw new ColonnadeError('conflict', 'the token is no longer that of an admin');
}
