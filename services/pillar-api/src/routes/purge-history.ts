import { zNothing } from '@colonnade/contracts';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';

/**
 * `POST /pillars/{pid}/purge-history`: empties the values of the versions a pillar had, also of a deleted one. For what
 * should never have been stored in the clear. No event: nothing that is now changes. What a living pillar is, stays.
 */
export function purgeHistoryRoute(estate: Estate): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/purge-history',
    permission: 'pillar:purge-history',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params }) {
      await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'pillar.purgeHistory', pid: params.pid ?? '' }],
        events: [],
      });
      return { status: 204 };
    },
  });
}
