import { ColonnadeError, zPageQuery, zPillarVersions } from '@colonnade/contracts';
import type { PillarVersion } from '@colonnade/estate-store';
import { selectOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { fillPage } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { shownValue, viewTime } from '../views.ts';

/** `GET /pillars/{pid}/versions`: what a pillar was, oldest first, also when it is gone; secrets masked. */
export function pillarVersionsRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/pillars/:pid/versions',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zPillarVersions,
    async handle({ principal, params, query }) {
      const isVisible = await selectOn(principal, 'estate:read');
      const { after, limit } = pageOptions(query);
      const { rows, next } = await fillPage(
        { after: readTick(after), limit },
        (page) => readVersions(estate, params.pid ?? '', page),
        (version) => isVisible(version),
        (version) => version.tick,
        shownValue,
      );
      if (rows.length === 0 && after === undefined)
        throw new ColonnadeError('not_found', 'there is no such pillar');
      const items = rows.map(viewVersion);
      return { status: 200, body: { items, next_cursor: writeCursor(next?.toString()) } };
    },
  });
}

async function readVersions(estate: Estate, pid: string, page: { after: number | undefined; limit: number }) {
  // One more than the page, which only says whether there is a next one.
  const found = await estate.store.listVersions(pid, { after: page.after ?? 0, limit: page.limit + 1 });
  const rows = found.slice(0, page.limit);
  return { rows, next: found.length > page.limit ? rows.at(-1)?.tick : undefined };
}

function readTick(after: string | undefined): number | undefined {
  if (after === undefined) return undefined;
  if (/^[1-9][0-9]{0,14}$/u.test(after)) return Number(after);
  throw new ColonnadeError('unprocessable', 'cursor: not one of this list', { field: 'cursor' });
}

export function viewVersion(version: PillarVersion) {
  return {
    op: version.op,
    tgt_type: version.tgtType,
    tgt_id: version.tgtId,
    pillarenv: version.pillarenv,
    name: version.name,
    value: version.purged ? null : shownValue(version),
    is_secret: version.isSecret,
    purged: version.purged,
    by: version.updatedBy,
    at: viewTime(version.updatedAtMs),
    clock: version.tick,
  };
}
