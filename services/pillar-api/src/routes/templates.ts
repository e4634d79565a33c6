import { randomBytes } from 'node:crypto';
import {
  ColonnadeError,
  zNothing,
  zPageQuery,
  zTemplateCreate,
  zTemplatePage,
  zTemplateUpdate,
  zTemplateView,
} from '@colonnade/contracts';
import type { TemplateRecord } from '@colonnade/estate-store';
import { fromPlain, type Value } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn, selectOn, type Target } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { pillarEvent, templateEvent } from '../estate-events.ts';
import { everyRow } from '../every-row.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { asFailedCreate, checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { fillPage } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Idempotency } from '../idempotency.ts';
import type { Schemas } from '../templates/schemas.ts';
import { viewTemplate } from '../views.ts';

/** Task templates: a name and a JSON Schema, which says what a task's pillars must be like. */
export function templateRoutes(estate: Estate, schemas: Schemas, idempotency: Idempotency): readonly Route[] {
  return [
    createRoute(estate, schemas, idempotency),
    listRoute(estate),
    getRoute(estate),
    updateRoute(estate, schemas),
    deleteRoute(estate),
  ];
}

function createRoute(estate: Estate, schemas: Schemas, idempotency: Idempotency): Route {
  return defineRoute({
    method: 'POST',
    url: '/tasks/templates',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'kept',
    body: zTemplateCreate,
    response: zTemplateView,
    async handle(input) {
      const { principal, body, conditions } = input;
      const id = body.id ?? randomBytes(12).toString('hex');
      await requireOn(principal, 'pillar:write', itself(id));
      await schemas.check(principal.rateKey, body.schema);
      const { replayed, view } = await idempotency.once(
        input,
        'POST /tasks/templates',
        async (keep) => {
          const record = { id, name: body.name, schema: body.schema };
          const kept = fromPlain({ id });
          const result = await estate
            .write({
              by: principal.sub,
              mutations: [{ kind: 'template.put', expect: 'absent', record }],
              events: [templateEvent('template.created', record)],
              idempotency: keep(kept),
            })
            .catch((thrown) => {
              throw asFailedCreate(thrown, conditions);
            });
          return { result, kept };
        },
        async (kept) => ({ view: await viewMade(estate, principal, kept) }),
      );
      return { status: 201, body: view, etag: view.etag, location: pathOf(view.id), replayed };
    },
  });
}

/** A repeated request gets the template as it is now. */
async function viewMade(estate: Estate, principal: Principal, kept: Value) {
  const { id } = kept as { id: string };
  await requireOn(principal, 'pillar:write', itself(id));
  const { template, incarnation } = await findTemplate(estate, id);
  return viewTemplate(template, incarnation);
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/tasks/templates',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zPageQuery,
    response: zTemplatePage,
    async handle({ principal, query }) {
      const isVisible = await selectOn(principal, 'estate:read');
      const { rows, next } = await fillPage(
        pageOptions(query),
        (page) => estate.store.listTemplates(page),
        ({ id }) => isVisible(itself(id)),
        ({ id }) => id,
        ({ schema }) => schema,
      );
      const incarnation = await estate.incarnation();
      const items = rows.map((template) => viewTemplate(template, incarnation));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/tasks/templates/:tpl_id',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    response: zTemplateView,
    async handle({ principal, params }) {
      const { template, incarnation } = await findTemplate(estate, params.tpl_id);
      await requireOn(principal, 'estate:read', itself(template.id));
      const view = viewTemplate(template, incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

function updateRoute(estate: Estate, schemas: Schemas): Route {
  return defineRoute({
    method: 'PUT',
    url: '/tasks/templates/:tpl_id',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zTemplateUpdate,
    response: zTemplateView,
    async handle({ principal, params, body, conditions }) {
      requireIfMatch(conditions);
      const { template, incarnation } = await findTemplate(estate, params.tpl_id);
      await requireOn(principal, 'pillar:write', itself(template.id));
      checkIfMatch(conditions, etagOf(template.id, incarnation, template.tick));
      await schemas.check(principal.rateKey, body.schema);
      const record = { id: template.id, ...body };
      const { clock, atMs } = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'template.put', expect: template.tick, record }],
        events: [templateEvent('template.updated', record)],
      });
      const written = { updatedBy: principal.sub, updatedAtMs: atMs, tick: clock.tick };
      const view = viewTemplate({ ...template, ...body, ...written }, clock.incarnation);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

/** Takes everybody's defaults of the template with it. */
function deleteRoute(estate: Estate): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/tasks/templates/:tpl_id',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions }) {
      requireIfMatch(conditions);
      const { template, incarnation } = await findTemplate(estate, params.tpl_id);
      const { id, tick } = template;
      await requireOn(principal, 'pillar:write', itself(id));
      checkIfMatch(conditions, etagOf(id, incarnation, tick));
      const defaults = { tgtTypes: ['task_tpl'], tgtId: id } as const;
      const rows = await Array.fromAsync(everyRow((page) => estate.store.listPillars(defaults, page)));
      const drop = (pillar: (typeof rows)[number]) =>
        ({ kind: 'pillar.delete', pid: pillar.pid, expectTick: pillar.tick }) as const;
      await estate.write({
        by: principal.sub,
        mutations: [...rows.map(drop), { kind: 'template.delete', id, expect: tick }],
        events: [
          ...rows.map((pillar) => pillarEvent('pillar.deleted', pillar)),
          templateEvent('template.deleted', template),
        ],
      });
      return { status: 204 };
    },
  });
}

/** @throws ColonnadeError `not_found` */
export async function findTemplate(
  estate: Estate,
  id: string | undefined,
): Promise<{ template: TemplateRecord; incarnation: string }> {
  const template = await estate.store.getTemplate(id ?? '');
  if (template === undefined) throw new ColonnadeError('not_found', 'there is no such template');
  return { template, incarnation: await estate.incarnation() };
}

function itself(id: string): Target {
  return { tgtType: 'task_tpl', tgtId: id };
}

function pathOf(id: string): string {
  return `/tasks/templates/${encodeURIComponent(id)}`;
}
