import type { Bus } from '@colonnade/bus';
import { mergerExplain, zExplainQuery, zExplanation } from '@colonnade/contracts';
import { defineRoute, type Route } from '../http/route.ts';

/** `GET /explain`: which scope each key of a minion's pillar comes from; secrets masked. Answered by a merger. */
export function explainRoute(bus: Pick<Bus, 'request'>): Route {
  return defineRoute({
    method: 'GET',
    url: '/explain',
    permission: 'estate:read',
    recorded: false,
    idempotency: 'ignored',
    query: zExplainQuery,
    response: zExplanation,
    async handle({ query, call }) {
      const { master, minion_id, pillarenv = 'auto' } = query;
      return { status: 200, body: await bus.request(mergerExplain, { master, minion_id, pillarenv }, call) };
    },
  });
}
