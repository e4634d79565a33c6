import { zCollectionRule, zCollectionView } from '@colonnade/contracts';
import type { Principal } from '../auth/authenticate.ts';
import { requirePermission } from '../auth/permissions.ts';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { collectionEvent } from '../estate-events.ts';
import { type Conditions, checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { ruleText } from '../membership/rule-text.ts';
import { settleAll } from '../membership/settle.ts';
import { viewCollection } from '../views.ts';
import { findCollection } from './collections.ts';

/**
 * The rule of a collection: whose inventory satisfies it is a member. Answered when all minions are settled; a rule chooses among all minions, so it
 * takes `minion:write` for the whole estate.
 */
export function collectionRuleRoutes(estate: Estate): readonly Route[] {
  return [putRoute(estate), deleteRoute(estate)];
}

const URL = '/collections/:id/rule';

function putRoute(estate: Estate): Route {
  return defineRoute({
    method: 'PUT',
    url: URL,
    permission: 'collection:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zCollectionRule,
    response: zCollectionView,
    async handle({ principal, params, body, conditions }) {
      return await setRule(estate, principal, params.id, conditions, ruleText(body));
    },
  });
}

function deleteRoute(estate: Estate): Route {
  return defineRoute({
    method: 'DELETE',
    url: URL,
    permission: 'collection:write',
    scope: 'target',
    idempotency: 'ignored',
    response: zCollectionView,
    handle: ({ principal, params, conditions }) =>
      setRule(estate, principal, params.id, conditions, undefined),
  });
}

async function setRule(
  estate: Estate,
  principal: Principal,
  id: string | undefined,
  conditions: Conditions,
  rule: string | undefined,
) {
  requireIfMatch(conditions);
  const { collection, incarnation } = await findCollection(estate, id);
  await requireOn(principal, 'collection:write', { tgtType: 'collection', tgtId: collection.id });
  requirePermission(principal.access.whole, 'minion:write');
  checkIfMatch(conditions, etagOf(collection.id, incarnation, collection.tick));
  const { tick: expect, rule: _, ...before } = collection;
  const record = rule === undefined ? before : { ...before, rule };
  const { clock } = await estate.write({
    by: principal.sub,
    mutations: [{ kind: 'collection.rule', id: collection.id, expect, rule }],
    events: [collectionEvent('collection.updated', record)],
  });
  await settleAll(estate, principal.sub);
  const view = viewCollection({ ...record, tick: clock.tick }, clock.incarnation);
  return { status: 200, body: view, etag: view.etag };
}
