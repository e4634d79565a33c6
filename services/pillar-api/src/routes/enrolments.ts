import { randomUUID } from 'node:crypto';
import { enrolmentResource, zEnrolment, zEnrolmentCreate } from '@colonnade/contracts';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { viewTime } from '../views.ts';
import { addMasterToken, findRoomyMaster } from './master-tokens.ts';

/** An hour: long enough to bring it to the host, short enough that a forgotten one is no key under the mat. */
const DEFAULT_LIFETIME_S = 3600;

/**
 * `POST /masters/{id}/enrolments`: a one-time token with which a host of this master gets its first identity. Its id
 * stands among the master's tokens at once, and deleting it there takes the identity back.
 */
export function enrolmentRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/masters/:id/enrolments',
    permission: 'master:write',
    scope: 'estate',
    idempotency: 'refused',
    body: zEnrolmentCreate,
    response: zEnrolment,
    async handle({ principal, params, body, call }) {
      const master = await findRoomyMaster(estate, params.id);
      const sid = randomUUID();
      const workload = { kind: 'master', master } as const;
      const grant = await principal.grant('enrolment.make', enrolmentResource(workload, sid));
      const lifetime_s = body?.expires_in_s ?? DEFAULT_LIFETIME_S;
      const made = await kms.makeEnrolment({ grant, workload, sid, lifetime_s }, call);
      // A token whose id is not listed is good for nothing, so this write may fail without a trace.
      await addMasterToken(estate, principal, master, sid);
      const view = { id: sid, token: made.token, expires_at: viewTime(made.expires_at_ms) };
      return { status: 201, body: view, location: `/masters/${master}/tokens/${sid}` };
    },
  });
}
