import {
  ColonnadeError,
  zNothing,
  zPageQuery,
  zServiceCreate,
  zServicePage,
  zServiceUpdate,
  zServiceView,
} from '@colonnade/contracts';
import type { ServiceRecord } from '@colonnade/estate-store';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { asHalfDeleted, revokeToken } from '../master-tokens.ts';
import { checkTypes, valueOfTypes } from '../service-events/own-types.ts';
import type { Schemas } from '../templates/schemas.ts';
import { viewService } from '../views.ts';

/** Services that are no part of Colonnade: what each may publish (seed 003, "a service its own subjects"). */
export function serviceRoutes(estate: Estate, kms: Kms, schemas: Schemas): readonly Route[] {
  return [
    createRoute(estate, schemas),
    listRoute(estate),
    getRoute(estate),
    updateRoute(estate, schemas),
    deleteRoute(estate, kms),
  ];
}

function createRoute(estate: Estate, schemas: Schemas): Route {
  return defineRoute({
    method: 'POST',
    url: '/services',
    permission: 'service:write',
    scope: 'estate',
    idempotency: 'ignored',
    body: zServiceCreate,
    response: zServiceView,
    async handle({ principal, body: { id, types } }) {
      await checkTypes(schemas, principal.rateKey, types);
      const record = { id, types: valueOfTypes(types), enrolmentIds: [] };
      const { clock } = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'service.put', expect: 'absent', record }],
        events: [],
      });
      const view = viewService({ ...record, tick: clock.tick }, clock.incarnation);
      return { status: 201, body: view, etag: view.etag, location: `/services/${id}` };
    },
  });
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/services',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zServicePage,
    async handle({ query }) {
      const { rows, next } = await estate.store.listServices(pageOptions(query));
      const incarnation = await estate.incarnation();
      const items = rows.map((service) => viewService(service, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/services/:id',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    response: zServiceView,
    async handle({ params }) {
      const view = viewService(await findService(estate, params.id), await estate.incarnation());
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function updateRoute(estate: Estate, schemas: Schemas): Route {
  return defineRoute({
    method: 'PUT',
    url: '/services/:id',
    permission: 'service:write',
    scope: 'estate',
    idempotency: 'ignored',
    body: zServiceUpdate,
    response: zServiceView,
    async handle({ principal, params, body: { types }, conditions }) {
      requireIfMatch(conditions);
      const service = await findService(estate, params.id);
      checkIfMatch(conditions, etagOf(service.id, await estate.incarnation(), service.tick));
      await checkTypes(schemas, principal.rateKey, types);
      const { tick: expect, ...before } = service;
      const record = { ...before, types: valueOfTypes(types) };
      const { clock } = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'service.put', expect, record }],
        events: [],
      });
      const view = viewService({ ...record, tick: clock.tick }, clock.incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function deleteRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/services/:id',
    permission: 'service:write',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions, call }) {
      requireIfMatch(conditions);
      const { id, tick, enrolmentIds } = await findService(estate, params.id);
      checkIfMatch(conditions, etagOf(id, await estate.incarnation(), tick));
      // The KMS first: what is gone from the estate must get no further token.
      for (const sid of enrolmentIds) await revokeToken(kms, principal, sid, call);
      const mutations = [{ kind: 'service.delete', id, expect: tick }] as const;
      await estate.write({ by: principal.sub, mutations, events: [] }).catch((thrown) => {
        throw asHalfDeleted(
          thrown,
          'its enrolments are revoked, but the service is still there',
          'delete it',
        );
      });
      return { status: 204 };
    },
  });
}

export async function findService(estate: Estate, id: string | undefined): Promise<ServiceRecord> {
  const service = await estate.store.getService(id ?? '');
  if (service === undefined) throw new ColonnadeError('not_found', 'there is no such service');
  return service;
}
