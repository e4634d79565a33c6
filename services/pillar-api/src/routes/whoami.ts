import { zWhoami } from '@colonnade/contracts';
import { defineRoute, type Route } from '../http/route.ts';

/** `GET /whoami`: who the token belongs to and what it may do, for user interfaces that offer no more than that. */
export function whoamiRoute(): Route {
  return defineRoute({
    method: 'GET',
    url: '/whoami',
    permission: 'self:read',
    scope: 'none',
    idempotency: 'ignored',
    response: zWhoami,
    async handle({ principal }) {
      const { sub, tokenId, wholeRoles, access, permissions } = principal;
      const body = {
        ...{ sub, token_id: tokenId ?? null, roles: [...wholeRoles] },
        scoped_roles: [...access.scoped],
        permissions: [...permissions].sort(),
      };
      return { status: 200, body };
    },
  });
}
