import type { Bus } from '@colonnade/bus';
import {
  ColonnadeError,
  LIMITS,
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
      const { master, minion_id, pillarenv = 'auto', values } = query;
      const omit_values = values === 'omit';
      const body = await bus
        .request(mergerExplain, { master, minion_id, pillarenv, omit_values }, call)
        .catch((thrown) => {
          throw asTooLargeToTell(thrown);
        });
      // The merger masks secrets; a merger that forgets to must not make this API show them.
      const keys = body.keys.map((key) =>
        key.is_secret && !omit_values ? { ...key, value: SECRET_MASK } : key,
      );
      return { status: 200, body: { ...body, keys } };
    },
  });
}

/** A merge may be larger than a message on the bus. It is not the request that is too large, so not 413. */
function asTooLargeToTell(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError) || thrown.code !== 'too_large') return thrown;
  const limit = LIMITS.natsPayloadBytes / 1024 / 1024;
  const how =
    'ask with values=omit, or for some of its environments with pillarenv, and read large values by their pid';
  const why = `the explanation of this minion's pillar is over ${limit} MiB: ${how}`;
  return new ColonnadeError('unprocessable', `values: ${why}`, { field: 'values', cause: thrown });
}
