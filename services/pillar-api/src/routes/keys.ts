import { zKeyVersionPage, zKeyVersionView, zPageQuery } from '@colonnade/contracts';
import { cutPage, pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { viewKeyVersion } from '../views.ts';

/** The keyring of crypto-kms (seed 000, keys): what there is, and a next version. Keys themselves never come here. */
export function keyRoutes(kms: Kms): readonly Route[] {
  return [listRoute(kms), rotateRoute(kms)];
}

function listRoute(kms: Kms): Route {
  return defineRoute({
    method: 'GET',
    url: '/keys',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zKeyVersionPage,
    async handle({ query, call }) {
      const keys = await kms.listKeys(call);
      const all = keys.flatMap(({ name, versions }) => versions.map((one) => viewKeyVersion(name, one)));
      const { rows, next } = cutPage(all, pageOptions(query), idOf);
      return { status: 200, body: { items: [...rows], next_cursor: writeCursor(next) } };
    },
  });
}

/** Pages go by it, in the order of versions. */
function idOf({ name, version }: { name: string; version: number }): string {
  return `${name} ${String(version).padStart(9, '0')}`;
}

function rotateRoute(kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/keys/:name/rotate',
    permission: 'key:write',
    scope: 'estate',
    floor: true,
    idempotency: 'ignored',
    response: zKeyVersionView,
    async handle({ principal, params, call }) {
      const name = params.name ?? '';
      const version = await kms.rotateKey(await principal.grant('key.rotate', name), name, call);
      return { status: 201, body: viewKeyVersion(name, version) };
    },
  });
}
