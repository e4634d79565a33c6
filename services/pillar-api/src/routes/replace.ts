import { ColonnadeError, zPillarReplace, zPillarView } from '@colonnade/contracts';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { sealForStore } from '../seal.ts';
import { answer, change, findMatching } from './secrecy.ts';

/**
 * `POST /pillars/{pid}/replace`: another value for a secret, with a DEK of its own, under the same pid and without a gap.
 * Seed 000 has no such thing: there the value of a secret cannot be updated, and PUT keeps to that.
 */
export function replaceRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/pillars/:pid/replace',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zPillarReplace,
    response: zPillarView,
    async handle(input) {
      const pillar = await findMatching(estate, input);
      if (!pillar.isSecret) {
        const how = `PUT /pillars/${pillar.pid} changes its value, POST /pillars/${pillar.pid}/seal makes it one`;
        throw new ColonnadeError('conflict', `this pillar is no secret: ${how}`);
      }
      const value = await sealForStore(kms, input, pillar, input.body.value);
      return answer(await change(estate, input.principal, pillar, value, true));
    },
  });
}
