import { ColonnadeError, type PillarView, zPillarUnsealed, zPillarView } from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requirePermission } from '../auth/permissions.ts';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pillarEvent } from '../estate-events.ts';
import { checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { defineRoute, type Input, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { checkOpenValue } from '../pillar-value.ts';
import { viewPillar } from '../views.ts';
import { findPillar, requireNamePermission } from './pillars.ts';
import { openStored } from './reveal.ts';

/** The only ways between plain and secret: both asked for by name, never by the way. */
export function secrecyRoutes(estate: Estate, kms: Kms): readonly Route[] {
  return [sealRoute(estate, kms), unsealRoute(estate, kms)];
}

/** The store purges the plain values of the history in the same transaction. */
function sealRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/seal',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    response: zPillarView,
    async handle(input) {
      const pillar = await findMatching(estate, input);
      if (pillar.isSecret) throw new ColonnadeError('conflict', 'this pillar is a secret already');
      const value = await kms.seal(pillar, pillar.value, input.call);
      return answer(await change(estate, input.principal, pillar, value, true));
    },
  });
}

/** As a reveal, and it shows the value to whoever reads the estate from then on: so it needs both rights. */
function unsealRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/unseal',
    permission: 'secret:reveal',
    scope: 'target',
    idempotency: 'ignored',
    response: zPillarUnsealed,
    async handle(input) {
      requirePermission(input.principal.permissions, 'pillar:write');
      const pillar = await findMatching(estate, input);
      await requireOn(input.principal, 'secret:reveal', pillar);
      if (!pillar.isSecret) throw new ColonnadeError('conflict', 'this pillar is no secret');
      const value = await openStored(kms, input.principal, pillar, input.call);
      checkOpenValue(value);
      return answer(await change(estate, input.principal, pillar, value, false));
    },
  });
}

type Asked = Pick<Input<Record<string, string>, unknown, unknown>, 'principal' | 'params' | 'conditions'>;

/** The pillar of the path, when it is in the state that If-Match names. @throws ColonnadeError `precondition_*` | `forbidden` */
export async function findMatching(
  estate: Estate,
  { principal, params, conditions }: Asked,
): Promise<PillarRecord> {
  requireIfMatch(conditions);
  const { pillar, incarnation } = await findPillar(estate, params.pid);
  await requireOn(principal, 'pillar:write', pillar);
  requireNamePermission(principal, pillar.name);
  checkIfMatch(conditions, etagOf(pillar.pid, incarnation, pillar.tick));
  return pillar;
}

/** Writes the new value of a pillar. */
export async function change(
  estate: Estate,
  principal: Principal,
  pillar: PillarRecord,
  value: Value,
  isSecret: boolean,
): Promise<PillarView> {
  const { clock, atMs } = await estate.write({
    by: principal.sub,
    mutations: [{ kind: 'pillar.update', pid: pillar.pid, expectTick: pillar.tick, value, isSecret }],
    events: [pillarEvent('pillar.updated', { ...pillar, isSecret })],
  });
  const changed = { value, isSecret, updatedBy: principal.sub, updatedAtMs: atMs, tick: clock.tick };
  return viewPillar({ ...pillar, ...changed }, clock.incarnation);
}

export function answer(view: PillarView) {
  return { status: 200, body: view, etag: view.etag };
}
