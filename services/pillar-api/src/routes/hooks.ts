import type { Bus } from '@colonnade/bus';
import {
  hooksHistory,
  hooksList,
  hooksTry,
  restartCall,
  zHookFolderPage,
  zHookPath,
  zHookRunPage,
  zHookRunsQuery,
  zHookTried,
  zHookTry,
  zPageQuery,
} from '@colonnade/contracts';
import { cutPage, pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';

type Asker = Pick<Bus, 'request'>;

/** Hooks ask other systems; what takes longer goes on, and is in the history. */
const RUN_BUDGET_MS = 60_000;

/** The hooks of hook-runner (seed 002): what there is, what became of them, and a run by hand. */
export function hookRoutes(bus: Asker): readonly Route[] {
  return [listRoute(bus), historyRoute(bus), runRoute(bus)];
}

function listRoute(bus: Asker): Route {
  return defineRoute({
    method: 'GET',
    url: '/hooks',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zHookFolderPage,
    async handle({ query, call }) {
      const { events } = await bus.request(hooksList, {}, call);
      const { rows, next } = cutPage(events, pageOptions(query), ({ event }) => event);
      return { status: 200, body: { items: [...rows], next_cursor: writeCursor(next) } };
    },
  });
}

function historyRoute(bus: Asker): Route {
  return defineRoute({
    method: 'GET',
    url: '/hooks/runs',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    query: zHookRunsQuery,
    response: zHookRunPage,
    async handle({ query: { event, ...page }, call }) {
      const { after, limit } = pageOptions(page);
      const asked = {
        limit,
        ...(event === undefined ? {} : { event }),
        ...(after === undefined ? {} : { after }),
      };
      const { runs, next } = await bus.request(hooksHistory, asked, call);
      return { status: 200, body: { items: runs, next_cursor: writeCursor(next) } };
    },
  });
}

/** Whoever runs hooks tells them what he likes, so it is a right of its own. */
function runRoute(bus: Asker): Route {
  return defineRoute({
    method: 'POST',
    url: '/hooks/:event/run',
    permission: 'hook:run',
    scope: 'estate',
    idempotency: 'ignored',
    params: zHookPath,
    body: zHookTry,
    response: zHookTried,
    async handle({ principal, params: { event }, body, call }) {
      const asked = { ...body, event, by: principal.sub };
      const answer = await bus.request(hooksTry, asked, restartCall(RUN_BUDGET_MS, call));
      return { status: 200, body: answer };
    },
  });
}
