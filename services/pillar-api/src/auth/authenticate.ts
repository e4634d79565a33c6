import { createHash, timingSafeEqual } from 'node:crypto';
import { apiTokenId, ColonnadeError, type ScopedRole } from '@colonnade/contracts';
import type { ApiTokenRecord, EstateStore } from '@colonnade/estate-store';
import { type MakeGrant, makeGrant } from './grant.ts';
import { type Permission, permissionsOf, type Role } from './permissions.ts';
import type { Access } from './scope.ts';

export type AuthStore = Pick<EstateStore, 'getToken' | 'getBranch' | 'listCollections'>;

/** Who asks. The token itself stays in the closure of `grant`, for as long as the request lives. */
export type Principal = {
  sub: string;
  tokenId: string;
  roles: readonly Role[];
  /** What some role of the caller allows, be it for a part of the estate; where, `requireOn` says. */
  permissions: ReadonlySet<Permission>;
  access: Access;
  grant: MakeGrant;
};

/** Compared against when the id is unknown, so that known and unknown ids take the same time. */
const NO_HASH = Buffer.alloc(32);

/** Hex SHA-256 of an API token, the form it is kept in. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * Finds who a request comes from. Reads the store every time: a deleted token is refused from the next request on.
 * @param header the Authorization header
 * @throws ColonnadeError `unauthorized`, the same for every reason but a missing header
 */
export async function authenticate(
  store: AuthStore,
  header: string | undefined,
  nowMs: number,
): Promise<Principal> {
  if (header === undefined)
    throw new ColonnadeError('unauthorized', 'send Authorization: Bearer <API token>');
  const token = /^Bearer +([!-~]+)$/iu.exec(header)?.[1] ?? '';
  const id = apiTokenId(token);
  const record = id === undefined ? undefined : await store.getToken(id);
  if (!matches(record, token) || record === undefined || isExpired(record, nowMs)) {
    throw new ColonnadeError('unauthorized', 'the API token is unknown, deleted or expired');
  }
  return {
    sub: record.sub,
    tokenId: record.id,
    roles: record.roles,
    ...rightsOf(record, store),
    grant: (act, res) => makeGrant({ token, tokenId: record.id, sub: record.sub, act, res }),
  };
}

/** What these roles allow, for one request. */
export function rightsOf(
  held: { roles: readonly Role[]; scopedRoles: readonly ScopedRole[] },
  tree: Access['tree'],
): Pick<Principal, 'permissions' | 'access'> {
  const { roles, scopedRoles: scoped } = held;
  return {
    permissions: permissionsOf([...roles, ...scoped.map(({ role }) => role)]),
    access: { whole: permissionsOf(roles), scoped, checks: { count: 0 }, tree },
  };
}

function matches(record: ApiTokenRecord | undefined, token: string): boolean {
  const given = createHash('sha256').update(token).digest();
  const kept = record === undefined ? NO_HASH : Buffer.from(record.hash, 'hex');
  return kept.length === given.length && timingSafeEqual(kept, given);
}

function isExpired(record: ApiTokenRecord, nowMs: number): boolean {
  return record.expiresAtMs !== undefined && record.expiresAtMs <= nowMs;
}
