import {
  ColonnadeError,
  minionEnv,
  ownScopes,
  type Workload,
  zIdentityEnrolled,
  zIdentityRenew,
  zIdentityToken,
  zIdentityView,
  zOwnMinionPage,
  zOwnPillars,
  zPageQuery,
} from '@colonnade/contracts';
import type { WorkloadIdentity } from '@colonnade/identity';
import type { Principal } from '../auth/authenticate.ts';
import type { Estate } from '../estate.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { viewIssued } from '../identity/issue-task.ts';
import { readOwnPillars } from '../identity/own-pillars.ts';
import type { Kms } from '../kms.ts';
import { viewTime } from '../views.ts';

/** What workloads ask for themselves, with their own identity (seed 003). */
export function identityRoutes(estate: Estate, kms: Kms): readonly Route[] {
  return [
    selfRoute(),
    renewRoute(estate, kms),
    enrolRoute(kms),
    pillarsRoute(estate, kms),
    minionsRoute(estate),
    minionPillarsRoute(estate, kms),
  ];
}

function selfRoute(): Route {
  return defineRoute({
    method: 'GET',
    url: '/identity',
    permission: 'identity:self',
    scope: 'none',
    idempotency: 'ignored',
    response: zIdentityView,
    async handle({ principal }) {
      const { sub, workload, sid = null, jti, expiresAtMs } = requireIdentity(principal).identity;
      return { status: 200, body: { sub, workload, sid, jti, expires_at: viewTime(expiresAtMs) } };
    },
  });
}

function renewRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/identity/renew',
    permission: 'identity:self',
    scope: 'none',
    idempotency: 'refused',
    body: zIdentityRenew,
    response: zIdentityToken,
    async handle({ principal, body = {}, call }) {
      const { identity, token } = requireIdentity(principal);
      const { audience, algorithm, minion } = body;
      if (minion !== undefined) await findOwnMinion(estate, identity.workload, minion);
      const asked = { ...orNothing({ audience }), ...orNothing({ algorithm }), ...orNothing({ minion }) };
      return { status: 201, body: viewIssued(await kms.renewWorkload({ token, ...asked }, call)) };
    },
  });
}

function enrolRoute(kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/identity/enrol',
    permission: 'identity:enrol',
    scope: 'none',
    idempotency: 'refused',
    response: zIdentityEnrolled,
    async handle({ principal, call }) {
      const { workload: credential } = principal;
      if (credential?.kind !== 'enrolment')
        throw new ColonnadeError('forbidden', 'this needs a one-time token');
      const issued = await kms.enrol(credential.token, call).catch((thrown) => {
        throw asOwnRefusal(thrown);
      });
      return { status: 201, body: { ...viewIssued(issued), workload: issued.workload } };
    },
  });
}

function pillarsRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'GET',
    url: '/identity/pillars',
    permission: 'identity:pillars',
    scope: 'none',
    floor: true,
    idempotency: 'ignored',
    response: zOwnPillars,
    async handle({ principal, call }) {
      const { identity, token } = requireIdentity(principal);
      const { workload } = identity;
      const body = await readOwnPillars({ estate, kms }, workload, token, ownScopes(workload), call);
      return { status: 200, body };
    },
  });
}

function minionsRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/identity/minions',
    permission: 'identity:minions',
    scope: 'none',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zOwnMinionPage,
    async handle({ principal, query }) {
      const master = masterOf(requireIdentity(principal).identity.workload);
      const { rows, next } = await estate.store.listMinions({ master }, pageOptions(query));
      const items = rows.map(({ id, collections }) => ({ id, collections: [...collections] }));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function minionPillarsRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'GET',
    url: '/identity/minions/:id/pillars',
    permission: 'identity:minions',
    scope: 'none',
    floor: true,
    idempotency: 'ignored',
    response: zOwnPillars,
    async handle({ principal, params, call }) {
      const { identity, token } = requireIdentity(principal);
      const { master, id } = await findOwnMinion(estate, identity.workload, params.id ?? '');
      const scopes = [{ tgtType: 'minion', tgtId: id, pillarenv: minionEnv(id, master) }] as const;
      const body = await readOwnPillars({ estate, kms }, identity.workload, token, scopes, call);
      return { status: 200, body };
    },
  });
}

function requireIdentity({ workload }: Principal): { identity: WorkloadIdentity; token: string } {
  if (workload?.kind === 'identity') return workload;
  throw new ColonnadeError('forbidden', 'this is for workloads, with an identity of their own');
}

function masterOf(workload: Workload): string {
  if (workload.kind === 'master') return workload.master;
  throw new ColonnadeError('forbidden', "this is for masters' identities");
}

async function findOwnMinion(estate: Estate, workload: Workload, id: string) {
  const minion = await estate.store.getMinion(masterOf(workload), id);
  if (minion === undefined) throw new ColonnadeError('not_found', 'the master has no such minion');
  return minion;
}

/** Of a refused one-time token it is the token the request came with that is at fault. */
function asOwnRefusal(thrown: unknown): unknown {
  const isRefused = thrown instanceof ColonnadeError && thrown.code === 'kms_refused';
  return isRefused ? new ColonnadeError('unauthorized', thrown.message, { cause: thrown }) : thrown;
}

/** A field that is there or not there at all. */
function orNothing<T extends Record<string, unknown>>(
  field: T,
): { [K in keyof T]: Exclude<T[K], undefined> } | object {
  return Object.values(field).every((value) => value === undefined) ? {} : (field as never);
}
