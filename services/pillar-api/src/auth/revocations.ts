import { createHash } from 'node:crypto';
import type { ApiTokenRecord, EstateStore } from '@colonnade/estate-store';
import type { OidcIdentity } from './oidc.ts';

/**
 * A JWT is good until it expires, whoever is asked in between. What can be taken back is kept here: all tokens that a
 * user was given up to now, or one token by its `jti`. Kept among the API tokens, as one without a hash, which
 * nobody can present: so it is read and copied like them, and a revocation holds from the next request on,
 * in every process.
 */
const PREFIX = 'revoked.';

export type Revoked = { sub: string } | { jti: string };

/** The record of a revocation; it may go when no token it is about can still be young enough. */
export function revocationRecord(
  what: Revoked,
  nowMs: number,
  maxAgeS: number,
): Omit<ApiTokenRecord, 'tick'> {
  const [kind, text] = 'sub' in what ? (['sub', what.sub] as const) : (['jti', what.jti] as const);
  return {
    ...{ id: revocationId(kind, text), hash: '', sub: text, roles: [], scopedRoles: [] },
    ...{ createdAtMs: nowMs, expiresAtMs: nowMs + (maxAgeS + 60) * 1000, lastUsedAtMs: undefined },
  };
}

export function isRevocation({ id }: Pick<ApiTokenRecord, 'id'>): boolean {
  return id.startsWith(PREFIX);
}

export function kindOf({ id }: Pick<ApiTokenRecord, 'id'>): 'sub' | 'jti' {
  return id.startsWith(`${PREFIX}sub.`) ? 'sub' : 'jti';
}

/** A user who was given a token after the revocation is let in again: so says the issuer, who knows him. */
export async function isRevoked(
  store: Pick<EstateStore, 'getToken'>,
  { sub, jti, issuedAtMs }: OidcIdentity,
): Promise<boolean> {
  const ofUser = await store.getToken(revocationId('sub', sub));
  // Whole seconds are all that `iat` has: one given in the very second is taken for an earlier one.
  if (ofUser !== undefined && issuedAtMs <= ofUser.createdAtMs) return true;
  return jti !== undefined && (await store.getToken(revocationId('jti', jti))) !== undefined;
}

function revocationId(kind: 'sub' | 'jti', text: string): string {
  return `${PREFIX}${kind}.${createHash('sha256').update(text).digest('hex').slice(0, 40)}`;
}
