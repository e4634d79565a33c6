import type { Bus } from '@colonnade/bus';
import { hooksGenerate, zGenerationCreate, zNothing } from '@colonnade/contracts';
import { defineRoute, type Route } from '../http/route.ts';

/**
 * `POST /generations`: asks hook-runner for policies anew (seed 002, "Update policies" and "Regenerate all policies"). It
 * answers when the wish is kept, not when it is fulfilled.
 */
export function generationRoute(bus: Pick<Bus, 'request'>): Route {
  return defineRoute({
    method: 'POST',
    url: '/generations',
    permission: 'pillar:write',
    scope: 'estate',
    idempotency: 'ignored',
    body: zGenerationCreate,
    response: zNothing,
    async handle({ body, call }) {
      await bus.request(hooksGenerate, { all: body?.all ?? false }, call);
      return { status: 202 };
    },
  });
}
