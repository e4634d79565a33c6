import { randomBytes } from 'node:crypto';
import {
  ColonnadeError,
  masterAclRules,
  masterRedisUser,
  zMasterCreate,
  zMasterCreated,
  zMasterPage,
  zMasterUpdate,
  zMasterView,
  zNothing,
  zPageQuery,
} from '@colonnade/contracts';
import type { MasterRecord } from '@colonnade/estate-store';
import type { Estate } from '../estate.ts';
import { masterEvent } from '../estate-events.ts';
import { cutPage, pageOptions, writeCursor } from '../http/cursor.ts';
import { checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { asHalfDeleted, issueToken, revokeQuietly, revokeToken } from '../master-tokens.ts';
import { viewMaster } from '../views.ts';

/** Logical masters: a failover group shares one. Their tokens are made and revoked by crypto-kms. */
export function masterRoutes(estate: Estate, kms: Kms): readonly Route[] {
  return [
    createRoute(estate, kms),
    listRoute(estate),
    getRoute(estate),
    updateRoute(estate),
    deleteRoute(estate, kms),
  ];
}

function createRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/masters',
    permission: 'master:write',
    scope: 'estate',
    idempotency: 'refused',
    body: zMasterCreate,
    response: zMasterCreated,
    async handle({ principal, body, call }) {
      const { id } = body;
      if ((await estate.store.getMaster(id)) !== undefined) {
        throw new ColonnadeError('already_exists', 'there is a master of this id', { field: 'id' });
      }
      const token = await issueToken(kms, principal, id, body.token_lifetime_s, call);
      const record = {
        id,
        envs: body.envs ?? [],
        tokenIds: [token.jti],
        onUnknownMinion: body.on_unknown_minion ?? 'register',
      };
      const written = estate.write({
        by: principal.sub,
        mutations: [{ kind: 'master.put', expect: 'absent', record }],
        events: [masterEvent('master.registered', record)],
      });
      const { clock } = await revokeQuietly(kms, principal, token.jti, call, written);
      const view = viewMaster({ ...record, tick: clock.tick }, clock.incarnation);
      return {
        status: 201,
        body: { ...view, token, bridge: bridgeAccess(id) },
        etag: view.etag,
        location: `/masters/${id}`,
      };
    },
  });
}

/** The Redis user of a master with a password made here, shown once and kept nowhere. */
function bridgeAccess(master: string) {
  const password = randomBytes(32).toString('base64url');
  return {
    redis_user: masterRedisUser(master),
    redis_password: password,
    redis_acl_rules: [...masterAclRules(master, password)],
  };
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/masters',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zMasterPage,
    async handle({ query }) {
      const { rows, next } = cutPage(await estate.store.listMasters(), pageOptions(query), (m) => m.id);
      const incarnation = await estate.incarnation();
      const items = rows.map((master) => viewMaster(master, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/masters/:id',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    response: zMasterView,
    async handle({ params }) {
      const { master, incarnation } = await findMaster(estate, params.id);
      const view = viewMaster(master, incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function updateRoute(estate: Estate): Route {
  return defineRoute({
    method: 'PUT',
    url: '/masters/:id',
    permission: 'master:write',
    scope: 'estate',
    idempotency: 'ignored',
    body: zMasterUpdate,
    response: zMasterView,
    async handle({ principal, params, body, conditions }) {
      requireIfMatch(conditions);
      const { master, incarnation } = await findMaster(estate, params.id);
      checkIfMatch(conditions, etagOf(master.id, incarnation, master.tick));
      const { tick: expect, ...before } = master;
      const record = { ...before, envs: body.envs, onUnknownMinion: body.on_unknown_minion };
      const { clock } = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'master.put', expect, record }],
        events: [masterEvent('master.updated', record)],
      });
      const view = viewMaster({ ...record, tick: clock.tick }, clock.incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function deleteRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/masters/:id',
    permission: 'master:write',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions, call }) {
      requireIfMatch(conditions);
      const { master, incarnation } = await findMaster(estate, params.id);
      checkIfMatch(conditions, etagOf(master.id, incarnation, master.tick));
      const minions = await estate.store.listMinions({ master: master.id }, { after: undefined, limit: 1 });
      if (minions.rows.length > 0)
        throw new ColonnadeError('conflict', 'the master has minions: delete them first');
      // The KMS first: what is gone from the estate must not still open secrets.
      for (const jti of master.tokenIds) await revokeToken(kms, principal, jti, call);
      await estate
        .write({
          by: principal.sub,
          mutations: [{ kind: 'master.delete', id: master.id, expect: master.tick }],
          events: [masterEvent('master.deleted', master)],
        })
        .catch((thrown) => {
          const how = 'delete its minions and then it, or make it a token with POST /masters/{id}/tokens';
          throw asHalfDeleted(thrown, 'its tokens are revoked, but the master is still there', how);
        });
      return { status: 204 };
    },
  });
}

export async function findMaster(
  estate: Estate,
  id: string | undefined,
): Promise<{ master: MasterRecord; incarnation: string }> {
  const master = await estate.store.getMaster(id ?? '');
  if (master === undefined) throw new ColonnadeError('not_found', 'there is no such master');
  return { master, incarnation: await estate.incarnation() };
}
