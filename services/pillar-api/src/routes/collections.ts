import { randomBytes } from 'node:crypto';
import {
  type CollectionCreate,
  ColonnadeError,
  zCollectionCreate,
  zCollectionDetail,
  zCollectionPage,
  zCollectionPatch,
  zCollectionView,
  zNothing,
  zPageQuery,
} from '@colonnade/contracts';
import type { CollectionRecord } from '@colonnade/estate-store';
import { fromPlain } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requirePermission } from '../auth/permissions.ts';
import { requireOn, selectOn, type Target } from '../auth/scope.ts';
import { nameCollectionPillars } from '../collection-pillars.ts';
import type { Estate } from '../estate.ts';
import { collectionEvent } from '../estate-events.ts';
import { cutPage, pageOptions, writeCursor } from '../http/cursor.ts';
import { asFailedCreate, checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Idempotency } from '../idempotency.ts';
import { viewCollection } from '../views.ts';

/** The tree of collections. One tree has one owner, whose sub is part of its pillars' environments (seed 000). */
export function collectionRoutes(estate: Estate, idempotency: Idempotency): readonly Route[] {
  return [
    createRoute(estate, idempotency),
    listRoute(estate),
    getRoute(estate),
    patchRoute(estate),
    deleteRoute(estate),
  ];
}

function createRoute(estate: Estate, idempotency: Idempotency): Route {
  return defineRoute({
    method: 'POST',
    url: '/collections',
    permission: 'collection:write',
    scope: 'target',
    idempotency: 'kept',
    body: zCollectionCreate,
    response: zCollectionView,
    async handle(input) {
      const { principal, body, conditions } = input;
      if (body.owner !== undefined && body.owner !== principal.sub) {
        requirePermission(principal.permissions, 'collection:assign-owner');
      }
      const { replayed, view } = await idempotency.once(
        input,
        'POST /collections',
        async (keep) => {
          const record = await newCollection(estate, body, principal);
          const kept = fromPlain({ ...record, parentId: record.parentId ?? null });
          const result = await estate
            .write({
              by: principal.sub,
              mutations: [{ kind: 'collection.put', expect: 'absent', record }],
              events: [collectionEvent('collection.created', record)],
              idempotency: keep(kept),
            })
            .catch((thrown) => {
              throw asFailedCreate(thrown, conditions);
            });
          return { result, kept };
        },
        async (kept, tick) => {
          const record = kept as unknown as Omit<CollectionRecord, 'tick' | 'parentId'> & {
            parentId: string | null;
          };
          const collection = { ...record, parentId: record.parentId ?? undefined, tick };
          await requireOn(principal, 'collection:write', itself(collection.id));
          return { view: viewCollection(collection, await estate.incarnation()) };
        },
      );
      return { status: 201, body: view, etag: view.etag, location: pathOf(view.id), replayed };
    },
  });
}

/** A child has its parent's owner; a root the caller's sub, or who an admin names. */
async function newCollection(
  estate: Estate,
  body: CollectionCreate,
  principal: Principal,
): Promise<Omit<CollectionRecord, 'tick'>> {
  const id = body.id ?? randomBytes(12).toString('hex');
  const parentId = body.parent_id ?? undefined;
  await requireOn(principal, 'collection:write', itself(parentId ?? id));
  if (parentId === undefined) return { id, name: body.name, parentId, owner: body.owner ?? principal.sub };
  const parent = await estate.store.getCollection(parentId);
  if (parent === undefined) {
    throw new ColonnadeError('unprocessable', 'parent_id: no such collection', { field: 'parent_id' });
  }
  if (body.owner !== undefined && body.owner !== parent.owner) {
    const why = 'owner: a collection has the owner of its parent; leave it out';
    throw new ColonnadeError('unprocessable', why, { field: 'owner' });
  }
  return { id, name: body.name, parentId, owner: parent.owner };
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/collections',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zCollectionPage,
    async handle({ principal, query }) {
      const isVisible = await selectOn(principal, 'estate:read');
      const all = (await estate.store.listCollections()).filter(({ id }) => isVisible(itself(id)));
      const { rows, next } = cutPage(all, pageOptions(query), (c) => c.id);
      const incarnation = await estate.incarnation();
      const items = rows.map((collection) => viewCollection(collection, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/collections/:id',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    response: zCollectionDetail,
    async handle({ principal, params }) {
      const branch = await estate.store.getBranch(params.id ?? '');
      const collection = branch.at(-1);
      if (collection === undefined) throw noCollection();
      const view = viewCollection(collection, await estate.incarnation());
      await requireOn(principal, 'estate:read', itself(collection.id));
      const isVisible = await selectOn(principal, 'estate:read');
      const above = branch.slice(0, -1).filter(({ id }) => isVisible(itself(id)));
      const ancestors = above.map(({ id, name }) => ({ id, name }));
      const named = await nameCollectionPillars(estate.store, collection.id, isVisible);
      return { status: 200, body: { ...view, ancestors, ...named }, etag: view.etag };
    },
  });
}

function patchRoute(estate: Estate): Route {
  return defineRoute({
    method: 'PATCH',
    url: '/collections/:id',
    permission: 'collection:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zCollectionPatch,
    response: zCollectionView,
    async handle({ principal, params, body, conditions }) {
      requireIfMatch(conditions);
      const { collection, incarnation } = await findCollection(estate, params.id);
      await requireOn(principal, 'collection:write', itself(collection.id));
      await requireMove(principal, body.parent_id);
      checkIfMatch(conditions, etagOf(collection.id, incarnation, collection.tick));
      const { tick: expect, ...before } = collection;
      const record = {
        ...before,
        name: body.name ?? before.name,
        parentId: body.parent_id === undefined ? before.parentId : (body.parent_id ?? undefined),
      };
      const { clock } = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'collection.put', expect, record }],
        events: [collectionEvent('collection.updated', record)],
      });
      const view = viewCollection({ ...record, tick: clock.tick }, clock.incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function deleteRoute(estate: Estate): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/collections/:id',
    permission: 'collection:write',
    scope: 'target',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions }) {
      requireIfMatch(conditions);
      const { collection, incarnation } = await findCollection(estate, params.id);
      await requireOn(principal, 'collection:write', itself(collection.id));
      checkIfMatch(conditions, etagOf(collection.id, incarnation, collection.tick));
      await estate
        .write({
          by: principal.sub,
          mutations: [{ kind: 'collection.delete', id: collection.id, expect: collection.tick }],
          events: [collectionEvent('collection.deleted', collection)],
        })
        .catch((thrown) => {
          throw asStillUsed(thrown, collection.id);
        });
      return { status: 204 };
    },
  });
}

function itself(id: string): Target {
  return { tgtType: 'collection', tgtId: id };
}

/** To the top is out of every scope but the whole estate. */
async function requireMove(principal: Principal, parentId: string | null | undefined): Promise<void> {
  if (parentId === undefined) return;
  if (parentId === null) requirePermission(principal.access.whole, 'collection:write');
  else await requireOn(principal, 'collection:write', itself(parentId));
}

/** Says where to see what still hangs on it. */
function asStillUsed(thrown: unknown, id: string): unknown {
  if (!(thrown instanceof ColonnadeError) || thrown.code !== 'conflict') return thrown;
  const where =
    `GET ${pathOf(id)} names its pillars, GET /collections its children (parent_id), ` +
    `GET /masters/{master}/minions?collection=${encodeURIComponent(id)} its members`;
  return new ColonnadeError('conflict', `${thrown.message}: ${where}`, { cause: thrown });
}

export async function findCollection(estate: Estate, id: string | undefined) {
  const collection = await estate.store.getCollection(id ?? '');
  if (collection === undefined) throw noCollection();
  return { collection, incarnation: await estate.incarnation() };
}

function noCollection(): ColonnadeError {
  return new ColonnadeError('not_found', 'there is no such collection');
}

function pathOf(id: string): string {
  return `/collections/${encodeURIComponent(id)}`;
}
