import { ColonnadeError, LIMITS, zEnrolment, zEnrolmentCreate, zNothing } from '@colonnade/contracts';
import type { ServiceRecord } from '@colonnade/estate-store';
import type { Principal } from '../auth/authenticate.ts';
import { type Estate, whileRaced } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { revokeToken } from '../master-tokens.ts';
import { makeEnrolment } from './enrolments.ts';
import { findService } from './services.ts';

/** One-time tokens of services, as masters have them: each stands for one host, and is taken back by itself. */
export function serviceEnrolmentRoutes(estate: Estate, kms: Kms): readonly Route[] {
  return [makeRoute(estate, kms), takeBackRoute(estate, kms)];
}

function makeRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/services/:id/enrolments',
    permission: 'service:write',
    scope: 'estate',
    idempotency: 'refused',
    body: zEnrolmentCreate,
    response: zEnrolment,
    async handle({ principal, params, body, call }) {
      const service = await findService(estate, params.id);
      checkRoom(service);
      const workload = { kind: 'service', service: service.id } as const;
      const view = await makeEnrolment(kms, principal, workload, body?.expires_in_s, call);
      // An enrolment that is not listed is good for nothing, so this write may fail without a trace.
      await changeEnrolments(estate, principal, service.id, (latest) => {
        checkRoom(latest);
        return [...latest.enrolmentIds, view.id];
      });
      return { status: 201, body: view, location: `/services/${service.id}/enrolments/${view.id}` };
    },
  });
}

function takeBackRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/services/:id/enrolments/:sid',
    permission: 'service:write',
    scope: 'estate',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, call }) {
      const { id, enrolmentIds } = await findService(estate, params.id);
      const sid = params.sid ?? '';
      if (!enrolmentIds.includes(sid))
        throw new ColonnadeError('not_found', 'the service has no such enrolment');
      // The KMS first: when the second step fails, the identity is dead already and the call can be repeated.
      await revokeToken(kms, principal, sid, call);
      await changeEnrolments(estate, principal, id, (latest) =>
        latest.enrolmentIds.filter((one) => one !== sid),
      );
      return { status: 204 };
    },
  });
}

function changeEnrolments(
  estate: Estate,
  { sub }: Principal,
  id: string,
  change: (latest: ServiceRecord) => readonly string[],
): Promise<void> {
  return whileRaced(async () => {
    const latest = await findService(estate, id);
    const { tick: expect, ...before } = latest;
    const record = { ...before, enrolmentIds: change(latest) };
    await estate.write({ by: sub, mutations: [{ kind: 'service.put', expect, record }], events: [] });
  });
}

function checkRoom({ enrolmentIds }: ServiceRecord): void {
  if (enrolmentIds.length < LIMITS.enrolmentsPerService) return;
  const most = LIMITS.enrolmentsPerService;
  throw new ColonnadeError('conflict', `a service has at most ${most} enrolments: delete one first`);
}
