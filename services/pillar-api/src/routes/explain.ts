import type { Bus } from '@colonnade/bus';
import {
  type Call,
  ColonnadeError,
  LIMITS,
  mergerExplain,
  SECRET_MASK,
  zExplainPreview,
  zExplainQuery,
  zExplanation,
} from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { z } from 'zod';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { requireCollections, type SupposedChange, supposeChanges } from '../supposed-changes.ts';

/** `GET /explain`: which scope each key of a minion's pillar comes from; secrets masked. Answered by a merger. */
export function explainRoutes(estate: Estate, bus: Pick<Bus, 'request'>): readonly Route[] {
  return [explainRoute(bus), previewRoute(estate, bus)];
}

function explainRoute(bus: Pick<Bus, 'request'>): Route {
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
      const asked = { master, minion_id, pillarenv, omit_values };
      return { status: 200, body: await askMerger(bus, asked, [], call) };
    },
  });
}

/**
 * `POST /explain/preview`: the same with changes that are not saved, and memberships the minion does not have. Their
 * values stay here: the merger decides by target and name, and of a secret nothing is shown, not even to who sent it.
 */
function previewRoute(estate: Estate, bus: Pick<Bus, 'request'>): Route {
  return defineRoute({
    method: 'POST',
    url: '/explain/preview',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    body: zExplainPreview,
    response: zExplanation,
    async handle({ principal, body, call }) {
      const { master, minion_id, pillarenv = 'auto', values, collections } = body;
      const changes = await supposeChanges(estate.store, body.changes ?? [], principal.sub);
      if (collections !== undefined) await requireCollections(estate.store, collections);
      const asked = {
        ...{ master, minion_id, pillarenv, omit_values: values === 'omit' },
        changes: changes.map(({ value: _, ...change }) => change),
        ...(collections === undefined ? {} : { collections }),
      };
      return { status: 200, body: await askMerger(bus, asked, changes, call) };
    },
  });
}

type Explained = z.output<typeof zExplanation>;

async function askMerger(
  bus: Pick<Bus, 'request'>,
  asked: z.output<typeof mergerExplain.request>,
  changes: readonly SupposedChange[],
  call: Call,
): Promise<Explained> {
  const body = await bus.request(mergerExplain, asked, call).catch((thrown) => {
    throw asTooLargeToTell(thrown);
  });
  if (asked.omit_values === true) return body;
  const keys = body.keys.map((key) => ({ ...key, value: shownValueOf(key, changes) }));
  return { ...body, keys };
}

/** The merger masks secrets; a merger that forgets to must not make this API show them. */
function shownValueOf(
  { is_secret, value, winner: { change } }: Explained['keys'][number],
  changes: readonly SupposedChange[],
): Value {
  const supposed = change === undefined ? undefined : changes[change];
  if (is_secret || supposed?.is_secret === true) return SECRET_MASK;
  return supposed === undefined ? value : (supposed.value ?? null);
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
