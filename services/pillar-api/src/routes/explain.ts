import type { Bus } from '@colonnade/bus';
import { mergerExplain, SECRET_MASK, zExplainQuery, zExplanation } from '@colonnade/contracts';
import { defineRoute, type Route } from '../http/route.ts';

/** `GET /explain`: which scope each key of a minion's pillar comes from; secrets masked. Answered by a merger. */
export function explainRoute(bus: Pick<Bus, 'request'>): Route {
  return defineRoute({
    method: 'GET',
    url: '/explain',
    permission: 'estate:read',
    idempotency: 'ignored',
    query: zExplainQuery,
    response: zExplanation,
    async handle({ query, call }) {
      const { master, minion_id, pillarenv = 'auto' } = query;
      const body = await bus.request(mergerExplain, { master, minion_id, pillarenv }, call);
      // The merger masks secrets; a merger that forgets to must not make this API show them.
      const keys = body.keys.map((key) => (key.is_secret ? { ...key, value: SECRET_MASK } : key));
      return { status: 200, body: { ...body, keys } };
    },
  });
}
