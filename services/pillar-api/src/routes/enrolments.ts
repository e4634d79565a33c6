import { randomUUID } from 'node:crypto';
import { type Call, type Workload, zEnrolment, zEnrolmentCreate } from '@colonnade/contracts';
import type { z } from 'zod';
import type { Principal } from '../auth/authenticate.ts';
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
      const workload = { kind: 'master', master } as const;
      const view = await makeEnrolment(kms, principal, workload, body?.expires_in_s, call);
      // A token whose id is not listed is good for nothing, so this write may fail without a trace.
      await addMasterToken(estate, principal, master, view.id);
      return { status: 201, body: view, location: `/masters/${master}/tokens/${view.id}` };
    },
  });
}

/** Has crypto-kms make a one-time token, with the admin's grant. It counts when its id is listed with the workload. */
export async function makeEnrolment(
  kms: Kms,
  principal: Principal,
  workload: Workload,
  expiresInS: number | undefined,
  call: Call,
): Promise<z.output<typeof zEnrolment>> {
  const sid = randomUUID();
  const asked = { workload, sid, lifetime_s: expiresInS ?? DEFAULT_LIFETIME_S };
  const { token, expires_at_ms } = await kms.makeEnrolment(principal, asked, call);
  return { id: sid, token, expires_at: viewTime(expires_at_ms) };
}
