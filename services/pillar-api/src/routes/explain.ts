import type { Bus } from '@colonnade/bus';
import { type Call, zExplained, zExplainPreview, zExplainQuery } from '@colonnade/contracts';
import type { Estate } from '../estate.ts';
import { explainNow, explainPast } from '../explain/explain.ts';
import { requireCollections, supposeChanges } from '../explain/supposed-changes.ts';
import { defineRoute, type Route } from '../http/route.ts';

/** Which scope each key of a minion's pillar comes from; secrets masked. Answered by a merger. */
export function explainRoutes(estate: Estate, bus: Pick<Bus, 'request'>): readonly Route[] {
  return [explainRoute(estate, bus), previewRoute(estate, bus)];
}

const ROUTE = { permission: 'estate:read', scope: 'estate', idempotency: 'ignored' } as const;

/** `GET /explain`: as it is, or as it was. */
function explainRoute(estate: Estate, bus: Pick<Bus, 'request'>): Route {
  return defineRoute({
    ...{ ...ROUTE, method: 'GET', url: '/explain', query: zExplainQuery, response: zExplained },
    async handle({ query: { at, ...asked }, call }) {
      const deps = depsOf(estate, bus, call);
      const nothing = async () => [];
      if (at === undefined) return { status: 200, body: await explainNow(deps, askOf(asked), nothing) };
      const when = /^\d+$/u.test(at) ? Number(at) : at;
      return { status: 200, body: await explainPast(deps, askOf(asked), nothing, when) };
    },
  });
}

/** `POST /explain/preview`: the same with changes that are not saved, and memberships the minion does not have. */
function previewRoute(estate: Estate, bus: Pick<Bus, 'request'>): Route {
  return defineRoute({
    ...{ ...ROUTE, method: 'POST', url: '/explain/preview', floor: false },
    ...{ body: zExplainPreview, response: zExplained },
    async handle({ principal, body, call }) {
      const { at, changes = [], collections, ...rest } = body;
      const deps = depsOf(estate, bus, call);
      if (collections !== undefined) await requireCollections(estate.store, collections);
      const suppose = (find: Parameters<typeof supposeChanges>[1]) =>
        supposeChanges(estate.store, find, changes, principal.sub);
      const asked = { ...askOf(rest), ...(collections === undefined ? {} : { collections }) };
      const found =
        at === undefined
          ? await explainNow(deps, asked, suppose)
          : await explainPast(deps, asked, suppose, at);
      return { status: 200, body: found };
    },
  });
}

function depsOf(estate: Estate, bus: Pick<Bus, 'request'>, call: Call) {
  return { store: estate.store, bus, call };
}

type Asked = {
  master: string;
  minion_id: string;
  pillarenv?: string | undefined;
  values?: 'show' | 'omit' | undefined;
};

function askOf({ master, minion_id, pillarenv = 'auto', values }: Asked) {
  return { master, minion_id, pillarenv, omit_values: values === 'omit' };
}
