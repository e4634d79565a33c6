import { ColonnadeError, minionEnv, type PillarList, zPillarList, zPillarPage } from '@colonnade/contracts';
import type { PillarFilter, PillarRecord } from '@colonnade/estate-store';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { viewPillar } from '../views.ts';

/** Store pages read for one answer when only the master is asked for: an answer may then be short, with a cursor. */
const SCANNED_PAGES = 10;

/** Seed 000: `POST /pillars/list` returns root and minion pillars only, secrets as `*******`. */
export function pillarListRoute(estate: Estate): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/list',
    permission: 'estate:read',
    recorded: false,
    idempotency: 'ignored',
    body: zPillarList,
    response: zPillarPage,
    async handle({ body }) {
      const { rows, next } = await listPillars(estate, filterOf(body), body.master, pageOptions(body));
      const incarnation = await estate.incarnation();
      const items = rows.map((pillar) => viewPillar(pillar, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function filterOf(body: PillarList): PillarFilter {
  const ofMinion = body.minion_id !== undefined || body.master !== undefined;
  if (ofMinion && body.tgt_type === 'root') {
    throw new ColonnadeError('unprocessable', 'tgt_type: root pillars have no minion and no master', {
      field: 'tgt_type',
    });
  }
  const all = ofMinion ? (['minion'] as const) : (['minion', 'root'] as const);
  const exact = body.minion_id !== undefined && body.master !== undefined;
  return {
    tgtTypes: body.tgt_type === undefined ? all : [body.tgt_type],
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.minion_id === undefined ? {} : { tgtId: body.minion_id }),
    ...(exact ? { pillarenv: minionEnv(body.minion_id ?? '', body.master ?? '') } : {}),
  };
}

/** The store knows no masters of pillars; rows of others are left out here, over a bounded number of its pages. */
async function listPillars(
  estate: Estate,
  filter: PillarFilter,
  master: string | undefined,
  page: { after: string | undefined; limit: number },
): Promise<{ rows: readonly PillarRecord[]; next: string | undefined }> {
  if (master === undefined || filter.pillarenv !== undefined) return estate.store.listPillars(filter, page);
  const rows: PillarRecord[] = [];
  let after = page.after;
  for (let scanned = 0; scanned < SCANNED_PAGES; scanned += 1) {
    const found = await estate.store.listPillars(filter, { after, limit: page.limit });
    for (const row of found.rows) {
      if (row.pillarenv !== minionEnv(row.tgtId, master)) continue;
      rows.push(row);
      if (rows.length === page.limit) return { rows, next: row.pid };
    }
    after = found.next;
    if (after === undefined) return { rows, next: undefined };
  }
  return { rows, next: after };
}
