import { ColonnadeError, minionEnv, type PillarList, zPillarList, zPillarPage } from '@colonnade/contracts';
import type { PillarFilter } from '@colonnade/estate-store';
import { selectOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { fillPage } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { shownValue, viewPillar } from '../views.ts';

/** Seed 000: `POST /pillars/list` returns root and minion pillars only, secrets as `*******`. */
export function pillarListRoute(estate: Estate): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/list',
    permission: 'estate:read',
    scope: 'target',
    floor: false,
    idempotency: 'ignored',
    body: zPillarList,
    response: zPillarPage,
    async handle({ principal, body }) {
      const filter = filterOf(body);
      const isVisible = await selectOn(principal, 'estate:read');
      const { rows, next } = await fillPage(
        pageOptions(body),
        (page) => estate.store.listPillars(filter, page),
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

function filterOf(body: PillarList): PillarFilter {
  const ofMinion = body.minion_id !== undefined || body.master !== undefined;
  if (ofMinion && body.tgt_type === 'root') {
    const why = 'tgt_type: root pillars have no minion and no master';
    throw new ColonnadeError('unprocessable', why, { field: 'tgt_type' });
  }
  const all = ofMinion ? (['minion'] as const) : (['minion', 'root'] as const);
  return {
    tgtTypes: body.tgt_type === undefined ? all : [body.tgt_type],
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.minion_id === undefined ? {} : { tgtId: body.minion_id }),
    ...(body.master === undefined ? {} : { master: body.master }),
    ...(body.minion_id === undefined || body.master === undefined
      ? {}
      : { pillarenv: minionEnv(body.minion_id, body.master) }),
  };
}
