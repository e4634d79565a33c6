import type { Bus } from '@colonnade/bus';
import {
  ColonnadeError,
  mergerExplain,
  SECRET_MASK,
  zExplainQuery,
  zExplanation,
} from '@colonnade/contracts';
import { defineRoute, type Route } from '../http/route.ts';

/** `GET /explain`: which scope each key of a minion's pillar comes from; secrets masked. Answered by a merger. */
export function explainRoute(bus: Pick<Bus, 'request'>): Route {
  return defineRoute({
    method: 'GET',
    url: '/explain',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    query: zExplainQuery,
    response: zExplanation,
    async handle({ query, call }) {
      const { master, minion_id, pillarenv = 'auto' } = query;
      const body = await bus
        .request(mergerExplain, { master, minion_id, pillarenv }, call)
        .catch((thrown) => {
          throw asTooLargeToTell(thrown);
        });
      // The merger masks secrets; a merger that forgets to must not make this API show them.
      const keys = body.keys.map((key) => (key.is_secret ? { ...key, value: SECRET_MASK } : key));
      return { status: 200, body: { ...body, keys } };
    },
  });
}

/** It is not the request that is too large, so not 413. */
function asTooLargeToTell(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError) || thrown.code !== 'too_large') return thrown;
  const why = "the explanation of this minion's pillar is too large for one message";
  return new ColonnadeError('internal', why, { cause: thrown });
}
