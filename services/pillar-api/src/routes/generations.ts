import type { Bus } from '@colonnade/bus';
import {
  hooksGenerate,
  hooksGeneration,
  hooksGenerations,
  hooksPolicyDiff,
  zGenerationCreate,
  zGenerationDetail,
  zGenerationPage,
  zGenerationPath,
  zNothing,
  zPageQuery,
  zPoliciesPath,
  zPolicyDiff,
} from '@colonnade/contracts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { defineRoute, type Route } from '../http/route.ts';

type Asker = Pick<Bus, 'request'>;

/** Generations of policies, which are hook-runner's (seed 002). */
export function generationRoutes(bus: Asker): readonly Route[] {
  return [createRoute(bus), listRoute(bus), getRoute(bus), diffRoute(bus)];
}

/**
 * `POST /generations`: asks hook-runner for policies anew (seed 002, "Update policies" and "Regenerate all policies"). It
 * answers when the wish is kept, not when it is fulfilled.
 */
function createRoute(bus: Asker): Route {
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

function listRoute(bus: Asker): Route {
  return defineRoute({
    method: 'GET',
    url: '/generations',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zGenerationPage,
    async handle({ query, call }) {
      const { after, limit } = pageOptions(query);
      const asked = { limit, ...(after === undefined ? {} : { after }) };
      const { generations, next } = await bus.request(hooksGenerations, asked, call);
      return { status: 200, body: { items: generations, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(bus: Asker): Route {
  return defineRoute({
    method: 'GET',
    url: '/generations/:id',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    params: zGenerationPath,
    response: zGenerationDetail,
    handle: async ({ params, call }) => ({
      status: 200,
      body: await bus.request(hooksGeneration, params, call),
    }),
  });
}

/** Plain values of every scope the minion has are in it, so the permission must hold for the whole estate. */
function diffRoute(bus: Asker): Route {
  return defineRoute({
    method: 'GET',
    url: '/masters/:master/minions/:id/policies/diff',
    permission: 'estate:read',
    scope: 'estate',
    idempotency: 'ignored',
    params: zPoliciesPath,
    response: zPolicyDiff,
    async handle({ params: { master, id }, call }) {
      return { status: 200, body: await bus.request(hooksPolicyDiff, { master, minion_id: id }, call) };
    },
  });
}
