import { createHash, timingSafeEqual } from 'node:crypto';
import { apiTokenId, ColonnadeError, type ScopedRole } from '@colonnade/contracts';
import type { ApiTokenRecord, EstateStore } from '@colonnade/estate-store';
import { granter, type WithGrant } from './grant.ts';
import { looksLikeJwt, type Oidc } from './oidc.ts';
import { type Permission, permissionsOf, type Role } from './permissions.ts';
import { isRevoked } from './revocations.ts';
import type { Access } from './scope.ts';
import type { createTokenUse } from './token-use.ts';
import { RIGHTS_OF, tokenOf, type WorkloadCredential, type Workloads } from './workload.ts';

type AuthStore = Pick<EstateStore, 'getToken' | 'getBranch' | 'listCollections'>;

/** What tells who somebody is. */
export type Authenticator = {
  store: AuthStore;
  /** Undefined: API tokens only. */
  oidc: Oidc | undefined;
  workloads: Workloads;
  noteUse: ReturnType<typeof createTokenUse>;
};

/** Who asks. The token itself stays in the closure of `granted`, for as long as the request lives. */
export type Principal = {
  sub: string;
  /** Of an API token; whoever comes with a token of the issuer's has none. */
  tokenId: string | undefined;
  /** Who shares one rate: each API token has its own, a user of the issuer's one for all his tokens. */
  rateKey: string;
  /** Of both kinds, scoped or not: what records call his groups. */
  roles: readonly Role[];
  /** For the whole estate. */
  wholeRoles: readonly Role[];
  /** What some role of the caller allows, be it for a part of the estate; where, `requireOn` says. */
  permissions: ReadonlySet<Permission>;
  access: Access;
  granted: WithGrant;
  /** Of a workload that came with an identity of its own, or for its first one. */
  workload: WorkloadCredential | undefined;
  /** Who it is now, for what goes on longer than a request. @throws ColonnadeError as `authenticate` */
  renew: () => Promise<Principal>;
};

/** Compared against when the id is unknown, so that known and unknown ids take the same time. */
const NO_HASH = Buffer.alloc(32);

/** Hex SHA-256 of an API token, the form it is kept in. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/**
 * Finds who a request comes from. Reads the store every time: a deleted or revoked token is refused from the next
 * request on.
 * @param headers Authorization, or X-Colonnade-Token
 * @throws ColonnadeError `unauthorized`, of an API token the same for every reason | `unavailable` (the issuer's keys)
 */
export async function authenticate(
  authenticator: Authenticator,
  headers: Parameters<typeof tokenOf>[0],
  nowMs: number,
): Promise<Principal> {
  const { store, oidc, workloads, noteUse } = authenticator;
  const renew = () => authenticate(authenticator, headers, Date.now());
  const token = tokenOf(headers);
  const workload = await workloads.authenticate(token, nowMs);
  if (workload !== undefined) return { ...ofWorkload(store, workload), renew };
  if (oidc !== undefined && looksLikeJwt(token)) {
    return { ...(await ofIssuer(store, oidc, token, nowMs)), renew };
  }
  const id = apiTokenId(token);
  const record = id === undefined ? undefined : await store.getToken(id);
  if (!matches(record, token) || record === undefined || isExpired(record, nowMs)) {
    throw new ColonnadeError('unauthorized', 'the API token is unknown, deleted or expired');
  }
  noteUse(record, nowMs);
  return {
    sub: record.sub,
    tokenId: record.id,
    rateKey: `token:${record.id}`,
    workload: undefined,
    renew,
    ...rightsOf(record, store),
    granted: granter({ token, tokenId: record.id, sub: record.sub }),
  };
}

async function ofIssuer(
  store: AuthStore,
  oidc: Oidc,
  token: string,
  nowMs: number,
): Promise<Omit<Principal, 'renew'>> {
  const identity = await oidc.verify(token, nowMs);
  if (await isRevoked(store, identity)) {
    throw new ColonnadeError('unauthorized', 'the bearer token is refused: it was revoked');
  }
  return {
    sub: identity.sub,
    tokenId: undefined,
    rateKey: `user:${identity.sub}`,
    workload: undefined,
    ...rightsOf(identity, store),
    granted: async () => {
      const how = 'an admin makes you one with POST /tokens';
      throw new ColonnadeError('forbidden', `this needs an API token of your own, not the issuer's: ${how}`);
    },
  };
}

/** A workload has no role: what it may do here is its own, and its identity makes no grants. */
function ofWorkload(store: AuthStore, workload: WorkloadCredential): Omit<Principal, 'renew'> {
  const isFirst = workload.kind === 'enrolment';
  const sub = isFirst ? 'enrolment' : workload.identity.sub;
  const permissions = new Set(RIGHTS_OF[isFirst ? 'enrolment' : workload.identity.workload.kind]);
  return {
    ...{ sub, workload, permissions, tokenId: undefined, rateKey: `workload:${sub}` },
    ...{ roles: [], wholeRoles: [] },
    access: { whole: permissions, scoped: [], checks: { count: 0 }, tree: store },
    granted: async () => {
      throw new ColonnadeError('forbidden', 'this needs an API token, not the identity of a workload');
    },
  };
}

/** What these roles allow, for one request. */
export function rightsOf(
  held: { roles: readonly Role[]; scopedRoles: readonly ScopedRole[] },
  tree: Access['tree'],
): Pick<Principal, 'roles' | 'wholeRoles' | 'permissions' | 'access'> {
  const { roles, scopedRoles: scoped } = held;
  return {
    wholeRoles: roles,
    roles: [...new Set([...roles, ...scoped.map(({ role }) => role)])],
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
