import { randomUUID } from 'node:crypto';
import {
  ColonnadeError,
  isSaltControlName,
  type PillarCreate,
  zNothing,
  zPillarCreate,
  zPillarUpdate,
  zPillarView,
} from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import { fromPlain, type Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requirePermission } from '../auth/permissions.ts';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pillarEvent } from '../estate-events.ts';
import { asFailedCreate, checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Input, type Route } from '../http/route.ts';
import type { Idempotency } from '../idempotency.ts';
import type { Kms } from '../kms.ts';
import { checkOpenValue } from '../pillar-value.ts';
import { sealForStore } from '../seal.ts';
import { resolveTarget } from '../target.ts';
import { viewPillar } from '../views.ts';

/** Seed 000, HTTP API: create, update, read and delete one pillar. */
export function pillarRoutes(estate: Estate, kms: Kms, idempotency: Idempotency): readonly Route[] {
  return [createRoute(estate, kms, idempotency), updateRoute(estate), getRoute(estate), deleteRoute(estate)];
}

function createRoute(estate: Estate, kms: Kms, idempotency: Idempotency): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'kept',
    body: zPillarCreate,
    response: zPillarView,
    async handle(input) {
      checkCreatedBy(input.body, input.principal);
      requireNamePermission(input.principal, input.body.name);
      const { replayed, view } = await idempotency.once(
        input,
        'POST /pillars',
        async (keep) => {
          const { pid, record } = await newPillar(estate, kms, input);
          const kept = fromPlain({ pid });
          const events = [pillarEvent('pillar.created', record)];
          const mutations = [{ kind: 'pillar.create', record } as const];
          const result = await estate
            .write({ by: input.principal.sub, mutations, events, idempotency: keep(kept) })
            .catch(async (thrown) => {
              throw asFailedCreate(await asNamedTwin(estate, record, thrown), input.conditions);
            });
          return { result, kept };
        },
        async (kept, tick) => ({ view: await viewCreated(estate, input.principal, kept, tick) }),
      );
      return { status: 201, body: view, etag: view.etag, location: `/pillars/${view.pid}`, replayed };
    },
  });
}

async function newPillar(estate: Estate, kms: Kms, input: Input<unknown, unknown, PillarCreate>) {
  const { body } = input;
  const target = await resolveTarget(estate.store, body, input.principal.sub);
  const context = { ...target, name: body.name };
  await requireOn(input.principal, 'pillar:write', context);
  const isSecret = body.is_secret ?? false;
  if (!isSecret) checkOpenValue(body.value);
  const value = isSecret ? await sealForStore(kms, input, context, body.value) : body.value;
  const pid = randomUUID();
  return { pid, record: { pid, ...context, value, isSecret } };
}

type Place = Pick<PillarRecord, 'tgtType' | 'tgtId' | 'name' | 'pillarenv'>;

/** Names the pillar that is there already: the list does not show those of collections (seed 000). */
export async function asNamedTwin(estate: Estate, place: Place, thrown: unknown): Promise<unknown> {
  if (!(thrown instanceof ColonnadeError) || thrown.code !== 'already_exists') return thrown;
  const { tgtType, tgtId, name, pillarenv } = place;
  const twin = await estate.store.findPillar(tgtType, tgtId, name, pillarenv);
  if (twin === undefined) return thrown;
  return new ColonnadeError('already_exists', `${thrown.message}: /pillars/${twin.pid}`, { cause: thrown });
}

/** From the history, so that a repeated request gets the pillar as it was made, whatever became of it since. */
async function viewCreated(estate: Estate, principal: Principal, kept: Value, tick: number) {
  const { pid } = kept as { pid: string };
  const [made] = await estate.store.listVersions(pid, { after: 0, limit: 1 });
  if (made?.tick !== tick || made.purged)
    throw new ColonnadeError('not_found', 'the pillar was made, and its history is gone');
  await requireOn(principal, 'pillar:write', made);
  return viewPillar(made, await estate.incarnation());
}

function updateRoute(estate: Estate): Route {
  return defineRoute({
    method: 'PUT',
    url: '/pillars/:pid',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zPillarUpdate,
    response: zPillarView,
    async handle({ principal, params, body, conditions }) {
      requireIfMatch(conditions);
      const { pillar, incarnation } = await findPillar(estate, params.pid);
      await requireOn(principal, 'pillar:write', pillar);
      requireNamePermission(principal, pillar.name);
      checkIfMatch(conditions, etagOf(pillar.pid, incarnation, pillar.tick));
      if (pillar.isSecret) throw secretImmutable(pillar);
      checkOpenValue(body.value);
      const { value } = body;
      const { clock, atMs } = await estate.write({
        by: principal.sub,
        mutations: [
          { kind: 'pillar.update', pid: pillar.pid, expectTick: pillar.tick, value, isSecret: false },
        ],
        events: [pillarEvent('pillar.updated', pillar)],
      });
      const now = { ...pillar, value, updatedBy: principal.sub, updatedAtMs: atMs, tick: clock.tick };
      const view = viewPillar(now, clock.incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/pillars/:pid',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    response: zPillarView,
    async handle({ principal, params }) {
      const { pillar, incarnation } = await findPillar(estate, params.pid);
      await requireOn(principal, 'estate:read', pillar);
      const view = viewPillar(pillar, incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function deleteRoute(estate: Estate): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/pillars/:pid',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions }) {
      requireIfMatch(conditions);
      const { pillar, incarnation } = await findPillar(estate, params.pid);
      await requireOn(principal, 'pillar:write', pillar);
      requireNamePermission(principal, pillar.name);
      checkIfMatch(conditions, etagOf(pillar.pid, incarnation, pillar.tick));
      await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'pillar.delete', pid: pillar.pid, expectTick: pillar.tick }],
        events: [pillarEvent('pillar.deleted', pillar)],
      });
      return { status: 204 };
    },
  });
}

export async function findPillar(
  estate: Estate,
  pid: string | undefined,
): Promise<{ pillar: PillarRecord; incarnation: string }> {
  const pillar = await estate.store.getPillar(pid ?? '');
  if (pillar === undefined) throw noPillar();
  return { pillar, incarnation: await estate.incarnation() };
}

function noPillar(): ColonnadeError {
  return new ColonnadeError('not_found', 'there is no such pillar');
}

/** Seed 000 validates created_by: it is the caller, and nobody else. */
function checkCreatedBy(body: PillarCreate, principal: Principal): void {
  if (body.created_by === undefined || body.created_by === principal.sub) return;
  const why = 'created_by: must be the user of the API token, or left out';
  throw new ColonnadeError('unprocessable', why, { field: 'created_by' });
}

export function requireNamePermission(principal: Principal, name: string): void {
  if (isSaltControlName(name)) requirePermission(principal.permissions, 'pillar:salt-control');
}

/** Seed 000: the value of a sealed pillar is never updated. */
function secretImmutable({ pid }: PillarRecord): ColonnadeError {
  const how = `POST /pillars/${pid}/replace gives it another one`;
  return new ColonnadeError('secret_immutable', `the value of a secret cannot be changed by PUT: ${how}`);
}
