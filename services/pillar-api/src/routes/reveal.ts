import { type Call, ColonnadeError, zPillarReveal } from '@colonnade/contracts';
import type { PillarRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { findPillar } from './pillars.ts';

/**
 * `POST /pillars/{pid}/reveal`: the value of one secret, to who may read secrets. The KMS opens it only with a grant
 * made from the user's own token; the answer waits for its audit record (see audit.ts) and is never stored.
 */
export function revealRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/reveal',
    permission: 'secret:reveal',
    scope: 'target',
    idempotency: 'refused',
    response: zPillarReveal,
    async handle({ principal, params, call }) {
      const { pillar } = await findPillar(estate, params.pid);
      await requireOn(principal, 'secret:reveal', pillar);
      if (!pillar.isSecret) {
        throw new ColonnadeError(
          'conflict',
          `this pillar is no secret: GET /pillars/${pillar.pid} shows its value`,
        );
      }
      const value = await openStored(kms, principal, pillar, call);
      return { status: 200, body: { pid: pillar.pid, name: pillar.name, value, clock: pillar.tick } };
    },
  });
}

/** Has the KMS open what is stored, with a grant of the caller's. */
export async function openStored(
  kms: Kms,
  principal: Principal,
  pillar: PillarRecord,
  call: Call,
): Promise<Value> {
  return kms.open(principal, pillar, pillar.value, call).catch((thrown) => {
    throw asStoredFault(thrown);
  });
}

/** Here it is not the request that is at fault, but what is stored. */
function asStoredFault(thrown: unknown): unknown {
  if (!(thrown instanceof ColonnadeError) || !['value_invalid', 'bad_request'].includes(thrown.code))
    return thrown;
  return new ColonnadeError('decrypt_failed', 'what is stored for this pillar is not a sealed value', {
    cause: thrown,
  });
}
