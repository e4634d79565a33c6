import type { Bus } from '@colonnade/bus';
import { ColonnadeError, toColonnadeError, zEventPublish, zEventPublished } from '@colonnade/contracts';
import type { ServiceRecord } from '@colonnade/estate-store';
import type { Principal } from '../auth/authenticate.ts';
import type { Estate } from '../estate.ts';
import type { Events } from '../events.ts';
import type { ParsedBody } from '../http/body.ts';
import type { Rates } from '../http/rates.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { buryServiceEvent } from '../service-events/dead-letters.ts';
import { checkServiceEvent, publishServiceEvent } from '../service-events/publish.ts';
import { refusalReason } from '../service-events/refusal.ts';
import type { Schemas } from '../templates/schemas.ts';

export type PublishDeps = {
  estate: Estate;
  bus: Pick<Bus, 'publishDurable' | 'isConnected'>;
  schemas: Pick<Schemas, 'faultsOf'>;
  /** Of each service. */
  eventRates: Rates;
  events: Pick<Events, 'serviceEvent'>;
};

/**
 * `POST /events`: a service publishes one event of a type of its own. Answered when the stream has it; what is refused for good is
 * answered when its dead letter is stored.
 */
export function publishRoute(deps: PublishDeps): Route {
  const { estate, bus, schemas, eventRates, events } = deps;
  const route = defineRoute({
    method: 'POST',
    url: '/events',
    permission: 'event:publish',
    scope: 'none',
    idempotency: 'ignored',
    body: zEventPublish,
    response: zEventPublished,
    async handle({ principal, body, call }) {
      const { service, enrolment } = await serviceOf(estate, principal);
      await checkServiceEvent(schemas, principal.rateKey, service, body);
      const from = { service: service.id, enrolment };
      const { duplicate } = await publishServiceEvent(bus, from, body, call);
      events.serviceEvent(duplicate ? 'duplicate' : 'stored');
      return { status: duplicate ? 200 : 201, body: { id: body.id, duplicate } };
    },
  });
  return {
    ...route,
    rates: eventRates,
    async run(request, reply, principal, call) {
      try {
        return await route.run(request, reply, principal, call);
      } catch (thrown) {
        const reason = refusalReason(thrown);
        const body = (request.body as ParsedBody | undefined)?.tree;
        if (reason === undefined || body === undefined) throw thrown;
        const { service } = await serviceOf(estate, principal);
        await buryServiceEvent(bus, service, body, { reason, error: toColonnadeError(thrown) }, call);
        events.serviceEvent(reason);
        throw thrown;
      }
    },
  };
}

/** The service that asks; it was there when the request came. */
async function serviceOf(
  estate: Estate,
  { workload }: Principal,
): Promise<{ service: ServiceRecord; enrolment: string }> {
  const identity = workload?.kind === 'identity' ? workload.identity : undefined;
  if (identity?.workload.kind !== 'service')
    throw new ColonnadeError('forbidden', 'this is for services, with an identity of their own');
  const service = await estate.store.getService(identity.workload.service);
  if (service === undefined || identity.sid === undefined || !service.enrolmentIds.includes(identity.sid))
    throw new ColonnadeError('unauthorized', 'the service was taken back meanwhile');
  return { service, enrolment: identity.sid };
}
