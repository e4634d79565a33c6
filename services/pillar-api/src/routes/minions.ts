import {
  ColonnadeError,
  zMinionPage,
  zMinionPath,
  zMinionPut,
  zMinionQuery,
  zMinionView,
  zNothing,
} from '@colonnade/contracts';
import { type MinionRecord, namedCollections } from '@colonnade/estate-store';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn, selectOn, type Target } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { minionEvent } from '../estate-events.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { type Conditions, checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { settleMinion } from '../membership/settle.ts';
import { viewMinion } from '../views.ts';
import type { Lifecycle } from './lifecycle.ts';
import { findMaster } from './masters.ts';

/** Minions of a master and the collections each is a member of, in their order: a later one wins. */
export function minionRoutes(estate: Estate, lifecycle: Lifecycle): readonly Route[] {
  return [putRoute(estate, lifecycle), listRoute(estate), getRoute(estate), deleteRoute(estate, lifecycle)];
}

function putRoute(estate: Estate, lifecycle: Lifecycle): Route {
  return defineRoute({
    method: 'PUT',
    url: '/masters/:master/minions/:id',
    permission: 'minion:write',
    scope: 'target',
    idempotency: 'ignored',
    params: zMinionPath,
    body: zMinionPut,
    response: zMinionView,
    async handle({ principal, params, body, conditions }) {
      const { master, id } = params;
      const { incarnation } = await findMaster(estate, master);
      const before = await estate.store.getMinion(master, id);
      await requireOn(principal, 'minion:write', itself(id));
      const named = before === undefined ? [] : namedCollections(before);
      await requireMemberships(principal, named, body.collections);
      checkPut(conditions, before, incarnation);
      const registeredBy = before?.registeredBy ?? principal.sub;
      const record = { master, id, collections: body.collections, registeredBy };
      const facts = await lifecycle.factsOf(master, id);
      const { clock } = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'minion.put', expect: before?.tick ?? 'absent', record }],
        events: [minionEvent(before === undefined ? 'minion.registered' : 'minion.updated', record, facts)],
      });
      await settleMinion(estate, master, id, principal.sub);
      const settled = (await estate.store.getMinion(master, id)) ?? { ...record, tick: clock.tick };
      const view = viewMinion(settled, clock.incarnation);
      if (before !== undefined) return { status: 200, body: view, etag: view.etag };
      const location = `/masters/${master}/minions/${encodeURIComponent(id)}`;
      return { status: 201, body: view, etag: view.etag, location };
    },
  });
}

/** If-Match changes what is there, If-None-Match: * makes what is not; neither would overwrite what was never read. */
function checkPut(conditions: Conditions, before: MinionRecord | undefined, incarnation: string): void {
  if (before !== undefined && conditions.ifNoneMatch !== undefined) {
    throw new ColonnadeError('precondition_failed', 'the minion exists', { field: 'If-None-Match' });
  }
  if (before !== undefined) {
    checkIfMatch(conditions, etagOfMinion(before, incarnation));
    return;
  }
  if (conditions.ifMatch !== undefined) {
    throw new ColonnadeError('precondition_failed', 'the minion does not exist', { field: 'If-Match' });
  }
  if (conditions.ifNoneMatch === undefined) {
    const how = 'the minion does not exist: send If-None-Match: * to register it';
    throw new ColonnadeError('precondition_required', how, { field: 'If-None-Match' });
  }
}

function itself(id: string): Target {
  return { tgtType: 'minion', tgtId: id };
}

/**
 * A member gets the collection's pillars, secrets included: so whoever puts a minion in or takes it out must be allowed
 * to for that collection too.
 */
async function requireMemberships(
  principal: Principal,
  before: readonly string[],
  after: readonly string[],
): Promise<void> {
  const changed = new Set(after).symmetricDifference(new Set(before));
  for (const tgtId of changed) {
    await requireOn(principal, 'minion:write', { tgtType: 'collection', tgtId });
  }
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/masters/:master/minions',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zMinionQuery,
    response: zMinionPage,
    async handle({ principal, params, query }) {
      const isVisible = await selectOn(principal, 'estate:read');
      const { master, incarnation } = await findMaster(estate, params.master);
      const filter = {
        master: master.id,
        ...(query.collection === undefined ? {} : { collections: [query.collection] }),
      };
      const { rows, next } = await estate.store.listMinions(filter, pageOptions(query));
      const visible = rows.filter(({ id }) => isVisible(itself(id)));
      const items = visible.map((minion) => viewMinion(minion, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/masters/:master/minions/:id',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    response: zMinionView,
    async handle({ principal, params }) {
      const { minion, incarnation } = await findMinion(estate, params.master, params.id);
      await requireOn(principal, 'estate:read', itself(minion.id));
      const view = viewMinion(minion, incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function deleteRoute(estate: Estate, lifecycle: Lifecycle): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/masters/:master/minions/:id',
    permission: 'minion:write',
    scope: 'target',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions, call }) {
      requireIfMatch(conditions);
      const { minion, incarnation } = await findMinion(estate, params.master, params.id);
      await requireOn(principal, 'minion:write', itself(minion.id));
      checkIfMatch(conditions, etagOfMinion(minion, incarnation));
      const { master, id, tick: expect } = minion;
      const facts = await lifecycle.factsOf(master, id);
      await lifecycle.beforeDeletion(minion, facts, principal.sub, call);
      await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'minion.delete', master, id, expect }],
        events: [minionEvent('minion.deleted', minion, facts)],
      });
      return { status: 204 };
    },
  });
}

export function etagOfMinion(minion: MinionRecord, incarnation: string): string {
  return etagOf(`${minion.master}/${minion.id}`, incarnation, minion.tick);
}

export async function findMinion(estate: Estate, master: string | undefined, id: string | undefined) {
  const minion = await estate.store.getMinion(master ?? '', id ?? '');
  if (minion === undefined) throw new ColonnadeError('not_found', 'there is no such minion');
  return { minion, incarnation: await estate.incarnation() };
}
