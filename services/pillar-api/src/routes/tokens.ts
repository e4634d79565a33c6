import { randomBytes } from 'node:crypto';
import {
  type Call,
  ColonnadeError,
  deriveGrantKey,
  type READER_RIGHTS,
  restartCall,
  type Scope,
  zNothing,
  zPageQuery,
  zTokenCreate,
  zTokenCreated,
  zTokenPage,
} from '@colonnade/contracts';
import type { ApiTokenRecord, Clock, Mutation } from '@colonnade/estate-store';
import { hashToken, type Principal } from '../auth/authenticate.ts';
import { permissionsOf, type Role } from '../auth/permissions.ts';
import { isRevocation } from '../auth/revocations.ts';
import type { Estate } from '../estate.ts';
import { cutPage, pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { viewToken } from '../views.ts';

/** API tokens. Only hashes are kept here; crypto-kms keeps the grant keys of those that may reveal or administer. */
export function tokenRoutes(estate: Estate, kms: Kms): readonly Route[] {
  return [createRoute(estate, kms), listRoute(estate), deleteRoute(estate, kms)];
}

function createRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/tokens',
    permission: 'token:write',
    scope: 'estate',
    idempotency: 'refused',
    body: zTokenCreate,
    response: zTokenCreated,
    async handle({ principal, body, call }) {
      const { token, id } = newToken();
      const nowMs = Date.now();
      const record = {
        id,
        hash: hashToken(token),
        sub: body.sub,
        roles: body.roles ?? [],
        scopedRoles: body.scoped_roles ?? [],
        createdAtMs: nowMs,
        expiresAtMs: body.expires_in_s === undefined ? undefined : nowMs + body.expires_in_s * 1000,
        lastUsedAtMs: undefined,
      };
      const clock = await makeToken(estate, kms, principal, record, token, call);
      const view = viewToken({ ...record, tick: clock.tick });
      return { status: 201, body: { ...view, token }, location: `/tokens/${id}` };
    },
  });
}

function newToken(): { id: string; token: string } {
  const id = randomBytes(8).toString('hex');
  return { id, token: `col_${id}_${randomBytes(32).toString('base64url')}` };
}

/** How long crypto-kms takes a token that the estate may not know yet, milliseconds. */
const PROVISIONAL_MS = 60_000;
const CLEAN_UP_MS = 2000;

/**
 * First the KMS, for a minute; then the estate; then the KMS for good. So a token that the estate knows can do all its
 * roles say, and one that it never came to know, because this process or the store failed in between, is soon nobody's:
 * it must not count as an admin, or the KMS would not take the bootstrap token back when no other is left.
 */
async function makeToken(
  estate: Estate,
  kms: Kms,
  principal: Principal,
  record: Omit<ApiTokenRecord, 'tick'>,
  token: string,
  call: Call,
): Promise<Clock> {
  const expiresAtMs = Math.min(record.expiresAtMs ?? Number.POSITIVE_INFINITY, Date.now() + PROVISIONAL_MS);
  const write = (mutation: Mutation) =>
    estate.write({ by: principal.sub, mutations: [mutation], events: [] });
  let written: Clock | undefined;
  try {
    await registerReader(kms, principal, { ...record, expiresAtMs }, token, call);
    written = (await write({ kind: 'token.put', expect: 'absent', record })).clock;
    if (expiresAtMs !== record.expiresAtMs) await registerReader(kms, principal, record, token, call);
    return written;
  } catch (thrown) {
    // As far as it goes, with time of its own, since the request's may be used up; what is left over ends by itself, and its token was shown to nobody.
    if (readerRights(record).length > 0) {
      const time = restartCall(CLEAN_UP_MS, call);
      await kms.deleteReader(principal, record.id, time).catch(() => undefined);
    }
    if (written !== undefined)
      await write({ kind: 'token.delete', id: record.id, expect: written.tick }).catch(() => undefined);
    throw thrown;
  }
}

async function registerReader(
  kms: Kms,
  principal: Principal,
  record: Omit<ApiTokenRecord, 'tick'>,
  token: string,
  call: Call,
): Promise<void> {
  const rights = readerRights(record);
  if (rights.length === 0) return;
  const key = deriveGrantKey(token);
  const reader = {
    token_id: record.id,
    sub: record.sub,
    rights,
    ...revealScopes(record),
    grant_key_hex: key.toString('hex'),
    expires_at_ms: record.expiresAtMs ?? null,
  };
  key.fill(0);
  await kms.putReader(principal, reader, call);
}

function readerRights(
  token: Pick<ApiTokenRecord, 'roles' | 'scopedRoles'>,
): (typeof READER_RIGHTS)[number][] {
  const permissions = permissionsOf([...token.roles, ...token.scopedRoles.map(({ role }) => role)]);
  const reveal = permissions.has('secret:reveal') ? (['reveal'] as const) : [];
  const admin = permissions.has('token:write') ? (['admin'] as const) : [];
  const task = permissions.has('pillar:write') ? (['task'] as const) : [];
  return [...reveal, ...admin, ...task];
}

/** crypto-kms holds who reveals to his scopes as far as they can be told without the estate. */
function revealScopes({ roles, scopedRoles }: Pick<ApiTokenRecord, 'roles' | 'scopedRoles'>): {
  reveal_scopes?: Scope[];
} {
  const reveals = (role: Role) => permissionsOf([role]).has('secret:reveal');
  if (roles.some(reveals)) return {};
  const scopes = scopedRoles.filter(({ role }) => reveals(role)).map(({ role: _, ...scope }) => scope);
  return scopes.length === 0 ? {} : { reveal_scopes: scopes };
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/tokens',
    permission: 'token:write',
    scope: 'estate',
    floor: true,
    idempotency: 'ignored',
    query: zPageQuery,
    response: zTokenPage,
    async handle({ query }) {
      const all = (await estate.store.listTokens()).filter((token) => !isRevocation(token));
      const { rows, next } = cutPage(all, pageOptions(query), (t) => t.id);
      return { status: 200, body: { items: rows.map(viewToken), next_cursor: writeCursor(next) } };
    },
  });
}

function deleteRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/tokens/:id',
    permission: 'token:write',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, call }) {
      const token = await estate.store.getToken(params.id ?? '');
      if (token === undefined || isRevocation(token))
        throw new ColonnadeError('not_found', 'there is no such token');
      await deleteToken(estate, kms, principal, token, call);
      return { status: 204 };
    },
  });
}

/**
 * The KMS before the estate: a stolen token must not still reveal when its record is gone; when the KMS does not answer,
 * the record is still there and the call can be repeated. Of an admin token the estate first notes its end: of two
 * admins who delete each other's at the same moment, one is refused there, before the KMS forgets both.
 */
async function deleteToken(
  estate: Estate,
  kms: Kms,
  principal: Principal,
  token: ApiTokenRecord,
  call: Call,
): Promise<void> {
  const write = (mutations: readonly Mutation[]) =>
    estate.write({ by: principal.sub, mutations, events: [] });
  let expect = token.tick;
  if (token.roles.includes('admin')) {
    const { tick: _, ...before } = token;
    const record = { ...before, expiresAtMs: endOf(token) };
    const end = { kind: 'token.put', expect, record } as const;
    expect = (await write([keepAdmin(principal, token), end])).clock.tick;
  }
  if (readerRights(token).length > 0) await kms.deleteReader(principal, token.id, call);
  await write([{ kind: 'token.delete', id: token.id, expect }]);
}

/**
 * Not the time of now: another request may have taken its own a moment before, or on a host whose clock is behind, and
 * would find a token that has just ended still valid.
 */
function endOf({ createdAtMs, expiresAtMs }: ApiTokenRecord): number {
  return Math.min(expiresAtMs ?? Number.POSITIVE_INFINITY, createdAtMs);
}

/**
 * Without an admin nobody could make another. The one admin token that is surely in somebody's hands is the one this
 * request came with: others may have been made in an answer that was lost. So that one must stay.
 */
function keepAdmin(principal: Principal, token: ApiTokenRecord): Mutation {
  if (principal.tokenId === undefined) {
    throw new ColonnadeError('forbidden', 'an admin token is deleted with another admin token only');
  }
  if (token.id === principal.tokenId) {
    const how = 'make another, and delete this one with it';
    throw new ColonnadeError('conflict', `an admin token cannot delete itself: ${how}`);
  }
  return { kind: 'token.requireAdmin', id: principal.tokenId };
}

export function isLiveAdmin(token: ApiTokenRecord, nowMs: number): boolean {
  return token.roles.includes('admin') && (token.expiresAtMs === undefined || token.expiresAtMs > nowMs);
}
