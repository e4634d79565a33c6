import { ColonnadeError, zForTargetQuery, zPillarPage } from '@colonnade/contracts';
import { selectOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { fillPage } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { shownValue, viewPillar } from '../views.ts';

/** `GET /pillars/for-target` (seed 000, get_for_target): reads exactly one pillarenv; secrets masked. */
export function forTargetRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/pillars/for-target',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zForTargetQuery,
    response: zPillarPage,
    async handle({ principal, query }) {
      const isVisible = await selectOn(principal, 'estate:read');
      const { tgt_type: tgtType, tgt_id: tgtId } = query;
      const filter = { tgtTypes: [tgtType], tgtId, pillarenv: pillarenvOf(query) };
      const { rows, next } = await fillPage(
        pageOptions(query),
        (page) => estate.store.listPillars(filter, page),
        (pillar) => isVisible(pillar),
        ({ pid }) => pid,
        shownValue,
      );
      const incarnation = await estate.incarnation();
      const items = rows.map((pillar) => viewPillar(pillar, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

type Asked = {
  tgt_type: string;
  tgt_id: string;
  user_sub?: string | undefined;
  pillarenv?: string | undefined;
};

/** The seed's form, unless the environment is named. @throws ColonnadeError `unprocessable` for both at once */
function pillarenvOf({ tgt_type, tgt_id, user_sub, pillarenv }: Asked): string {
  if (pillarenv === undefined)
    return `${tgt_type}:${tgt_id}${user_sub === undefined ? '' : `;user:${user_sub}`}`;
  if (user_sub === undefined) return pillarenv;
  const why = 'user_sub: is part of the pillarenv that is named; leave one of the two out';
  throw new ColonnadeError('unprocessable', why, { field: 'user_sub' });
}
