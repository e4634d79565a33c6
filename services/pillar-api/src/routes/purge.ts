import { ColonnadeError, zNothing } from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { Estate } from '../estate.ts';
import { pillarEvent } from '../estate-events.ts';
import { checkIfMatch, etagOf } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { requireNamePermission } from './pillars.ts';

/**
 * `POST /pillars/{pid}/purge`: a pillar is gone with all its history, also one that was deleted before. Nothing brings it
 * back, and on SQLite the file is rewritten before the answer.
 */
export function purgeRoute(estate: Estate): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/purge',
    permission: 'pillar:purge-history',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions }) {
      const pid = params.pid ?? '';
      const last = await estate.store.getVersion(pid);
      if (last === undefined) throw new ColonnadeError('not_found', 'there is no such pillar');
      const pillar = await estate.store.getPillar(pid);
      if (pillar !== undefined) {
        requireNamePermission(principal, pillar.name);
        checkIfMatch(conditions, etagOf(pid, await estate.incarnation(), pillar.tick));
      }
      await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'pillar.purge', pid, expectTick: last.tick }],
        events: eventsOf(pillar),
      });
      return { status: 204 };
    },
  });
}

/** Of one that was deleted before, nothing that is now changes. */
function eventsOf(pillar: PillarRecord | undefined) {
  return pillar === undefined ? [] : [pillarEvent('pillar.deleted', pillar)];
}
