import { setImmediate } from 'node:timers/promises';
import { type PillarSearchBody, TGT_TYPES, zPillarPage, zPillarSearch } from '@colonnade/contracts';
import type { PillarSearch } from '@colonnade/estate-store';
import { selectOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { fillPage } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { shownValue, viewPillar } from '../views.ts';

/** Finds pillars across all scopes. A page may be short, or empty, and still have a next one: looking takes time. */
export function searchRoute(estate: Estate): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/search',
    permission: 'estate:read',
    scope: 'target',
    floor: false,
    idempotency: 'ignored',
    body: zPillarSearch,
    response: zPillarPage,
    async handle({ principal, body }) {
      const search = searchOf(body);
      const isVisible = await selectOn(principal, 'estate:read');
      const { rows, next } = await fillPage(
        pageOptions(body),
        async (page) => {
          // A slice of the estate is compared at once; others get their turn between two of them.
          await setImmediate();
          return estate.store.searchPillars(search, page);
        },
        (pillar) => isVisible(pillar),
        (pillar) => pillar.pid,
        shownValue,
      );
      const incarnation = await estate.incarnation();
      const items = rows.map((pillar) => viewPillar(pillar, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function searchOf(body: PillarSearchBody): PillarSearch {
  const asked = {
    pillarenvs: body.scopes,
    name: body.name,
    namePrefix: body.name_prefix,
    value: body.value,
    createdBy: body.created_by,
    updatedBy: body.updated_by,
    sinceMs: body.since === undefined ? undefined : Date.parse(body.since),
    untilMs: body.until === undefined ? undefined : Date.parse(body.until),
  };
  const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== undefined));
  return { ...given, tgtTypes: body.tgt_type === undefined ? TGT_TYPES : [body.tgt_type] };
}
