import {
  ColonnadeError,
  zNothing,
  zPageQuery,
  zRevocationCreate,
  zRevocationPage,
  zRevocationView,
} from '@colonnade/contracts';
import type { Mutation } from '@colonnade/estate-store';
import type { Oidc } from '../auth/oidc.ts';
import { isRevocation, type Revoked, revocationRecord } from '../auth/revocations.ts';
import type { Estate } from '../estate.ts';
import { cutPage, pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { viewRevocation } from '../views.ts';

/** Revocations that have ended and go with one write. */
const SWEPT = 100;

/** Taking back what an OpenID Connect issuer has given, before it ends by itself. */
export function revocationRoutes(estate: Estate, oidc: Oidc | undefined): readonly Route[] {
  return [createRoute(estate, oidc), listRoute(estate), deleteRoute(estate)];
}

function createRoute(estate: Estate, oidc: Oidc | undefined): Route {
  return defineRoute({
    method: 'POST',
    url: '/revocations',
    permission: 'token:write',
    scope: 'estate',
    idempotency: 'ignored',
    body: zRevocationCreate,
    response: zRevocationView,
    async handle({ principal, body }) {
      if (oidc === undefined) {
        throw new ColonnadeError('conflict', 'no issuer is configured: API tokens are deleted, not revoked');
      }
      const what = (body.sub === undefined ? { jti: body.jti } : { sub: body.sub }) as Revoked;
      const record = revocationRecord(what, Date.now(), oidc.maxAgeS);
      const before = await estate.store.getToken(record.id);
      const expect = before?.tick ?? 'absent';
      await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'token.put', expect, record }, ...(await sweep(estate, record.id))],
        events: [],
      });
      return { status: 201, body: viewRevocation(record), location: `/revocations/${record.id}` };
    },
  });
}

async function sweep(estate: Estate, but: string): Promise<Mutation[]> {
  const nowMs = Date.now();
  const ended = (await estate.store.listTokens()).filter(
    (token) => isRevocation(token) && token.id !== but && (token.expiresAtMs ?? 0) <= nowMs,
  );
  return ended.slice(0, SWEPT).map(({ id, tick }) => ({ kind: 'token.delete', id, expect: tick }));
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/revocations',
    permission: 'token:write',
    scope: 'estate',
    floor: true,
    idempotency: 'ignored',
    query: zPageQuery,
    response: zRevocationPage,
    async handle({ query }) {
      const all = (await estate.store.listTokens()).filter(isRevocation);
      const { rows, next } = cutPage(all, pageOptions(query), ({ id }) => id);
      return { status: 200, body: { items: rows.map(viewRevocation), next_cursor: writeCursor(next) } };
    },
  });
}

function deleteRoute(estate: Estate): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/revocations/:id',
    permission: 'token:write',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params }) {
      const record = await estate.store.getToken(params.id ?? '');
      if (record === undefined || !isRevocation(record)) {
        throw new ColonnadeError('not_found', 'there is no such revocation');
      }
      const mutations = [{ kind: 'token.delete', id: record.id, expect: record.tick }] as const;
      await estate.write({ by: principal.sub, mutations, events: [] });
      return { status: 204 };
    },
  });
}
