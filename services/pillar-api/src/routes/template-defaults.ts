import { zDefaultsPut, zDefaultsView, zWithDefaults } from '@colonnade/contracts';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn, selectOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Kms } from '../kms.ts';
import { asDefaultsRace, draftDefaults, readDefaults } from '../template-defaults.ts';
import type { Schemas } from '../templates/schemas.ts';
import { viewPillar } from '../views.ts';
import { requireNamePermission } from './pillars.ts';
import { findTemplate } from './templates.ts';

/** What a user saved for a template (seed 000, task_tpl): shown, set, and put into the template's schema. */
export function templateDefaultsRoutes(estate: Estate, kms: Kms, schemas: Schemas): readonly Route[] {
  return [withDefaultsRoute(estate, schemas), getRoute(estate), putRoute(estate, kms)];
}

function withDefaultsRoute(estate: Estate, schemas: Schemas): Route {
  return defineRoute({
    method: 'GET',
    url: '/tasks/template/:tpl_id/with-defaults',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    response: zWithDefaults,
    async handle({ principal, params }) {
      const { template } = await findTemplate(estate, params.tpl_id);
      const { id, name, tick } = template;
      await requireOn(principal, 'estate:read', { tgtType: 'task_tpl', tgtId: id });
      const saved = await readVisible(estate, principal, id);
      const plain = saved.filter(({ isSecret }) => !isSecret);
      const secrets = saved.filter(({ isSecret }) => isSecret).map((pillar) => pillar.name);
      const values = new Map(plain.map((pillar) => [pillar.name, pillar.value]));
      const { schema, applied, leftOut } = await schemas.putDefaults(
        principal.rateKey,
        template.schema,
        values,
      );
      return { status: 200, body: { id, name, schema, applied, secrets, left_out: leftOut, clock: tick } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/tasks/template/:tpl_id/defaults',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    response: zDefaultsView,
    async handle({ principal, params }) {
      const { template } = await findTemplate(estate, params.tpl_id);
      return { status: 200, body: await viewDefaults(estate, principal, template.id) };
    },
  });
}

/** Sets those named, removes those listed, in one transaction. They are the caller's own, so there is no If-Match. */
function putRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'PUT',
    url: '/tasks/template/:tpl_id/defaults',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zDefaultsPut,
    response: zDefaultsView,
    async handle(input) {
      const { principal, params, body } = input;
      const { template } = await findTemplate(estate, params.tpl_id);
      await requireOn(principal, 'estate:read', { tgtType: 'task_tpl', tgtId: template.id });
      for (const { name } of body.pillars) requireNamePermission(principal, name);
      const change = { pillars: body.pillars, remove: body.remove ?? [] };
      const drafts = await draftDefaults({ store: estate.store, kms }, input, template.id, change);
      if (drafts.mutations.length > 0) {
        await estate.write({ by: principal.sub, ...drafts }).catch((thrown) => {
          throw asDefaultsRace(thrown);
        });
      }
      return { status: 200, body: await viewDefaults(estate, principal, template.id) };
    },
  });
}

async function readVisible(estate: Estate, principal: Principal, templateId: string) {
  const isVisible = await selectOn(principal, 'estate:read');
  return (await readDefaults(estate.store, templateId, principal.sub)).filter(isVisible);
}

async function viewDefaults(estate: Estate, principal: Principal, templateId: string) {
  const saved = await readVisible(estate, principal, templateId);
  const incarnation = await estate.incarnation();
  return { items: saved.map((pillar) => viewPillar(pillar, incarnation)) };
}
