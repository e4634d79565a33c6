import {
  ColonnadeError,
  taskTarget,
  zNothing,
  zTaskCreate,
  zTaskCreated,
  zTaskDetail,
  zTaskPage,
  zTaskQuery,
  zTaskStateChange,
  zTaskView,
} from '@colonnade/contracts';
import { isEndState, type TaskRecord } from '@colonnade/estate-store';
import { fromPlain, toPlain } from '@colonnade/value';
import type { Principal } from '../auth/authenticate.ts';
import { requireOn, selectOn, type Target } from '../auth/scope.ts';
import { type CreateTaskDeps, draftTask } from '../create-task.ts';
import type { Estate } from '../estate.ts';
import { pillarEvent, taskEvent } from '../estate-events.ts';
import { everyRow } from '../every-row.ts';
import { pageOptions, writeCursor } from '../http/cursor.ts';
import { checkIfMatch, etagOf, requireIfMatch } from '../http/etag.ts';
import { fillPage } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Idempotency } from '../idempotency.ts';
import type { TaskIdentities } from '../identity/task-identities.ts';
import { asDefaultsRace } from '../template-defaults.ts';
import { viewTask } from '../views.ts';
import { requireNamePermission } from './pillars.ts';

/** Tasks: made of a template for some minions, with pillars that are theirs as long as the task lives (seed 000). */
export function taskRoutes(
  parts: Omit<CreateTaskDeps, 'store'> & {
    estate: Estate;
    idempotency: Idempotency;
    identities: TaskIdentities;
  },
): readonly Route[] {
  const { estate, idempotency, identities, ...deps } = parts;
  return [
    createRoute(estate, deps, idempotency, identities),
    listRoute(estate),
    getRoute(estate),
    stateRoute(estate),
    deleteRoute(estate),
  ];
}

type NamedPillar = { pid: string; name: string; is_secret: boolean };

function createRoute(
  estate: Estate,
  deps: Omit<CreateTaskDeps, 'store'>,
  idempotency: Idempotency,
  identities: TaskIdentities,
): Route {
  return defineRoute({
    method: 'POST',
    url: '/tasks',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'kept',
    body: zTaskCreate,
    response: zTaskCreated,
    async handle(input) {
      const { principal, body } = input;
      for (const name of [...body.pillars.map((one) => one.name), ...(body.from_defaults ?? [])]) {
        requireNamePermission(principal, name);
      }
      const { replayed, view } = await idempotency.once(
        input,
        'POST /tasks',
        async (keep) => {
          const { store } = estate;
          const drafts = await draftTask({ store, ...deps }, input, Date.now());
          const { record, pillars, mutations, events } = drafts;
          const kept = fromPlain({ id: record.id, pillars });
          const result = await estate
            .write({ by: principal.sub, mutations, events, idempotency: keep(kept) })
            .catch((thrown) => {
              throw asDefaultsRace(thrown);
            });
          return { result, kept };
        },
        async (kept, tick) => {
          const made = toPlain(kept) as { id: string; pillars: NamedPillar[] };
          return { view: { ...(await viewMade(estate, principal, made.id, tick)), pillars: made.pillars } };
        },
      );
      const made = { ...view, ...(await identities.issue(principal, view.id, input.call)) };
      return { status: 201, body: made, etag: view.etag, location: pathOf(view.id), replayed };
    },
  });
}

/** As it was made, whatever became of it since. */
async function viewMade(estate: Estate, principal: Principal, id: string, tick: number) {
  await requireOn(principal, 'pillar:write', itself(id));
  const { task, incarnation } = await findTask(estate, id);
  const { createdBy, createdAtMs } = task;
  const first = {
    state: 'created',
    endedAtMs: undefined,
    updatedBy: createdBy,
    updatedAtMs: createdAtMs,
    tick,
  } as const;
  return viewTask({ ...task, ...first }, incarnation, createdAtMs);
}

function listRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/tasks',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    query: zTaskQuery,
    response: zTaskPage,
    async handle({ principal, query }) {
      const isVisible = await selectOn(principal, 'estate:read');
      const { tpl_id: templateId, state } = query;
      const filter = {
        ...(templateId === undefined ? {} : { templateId }),
        ...(state === undefined ? {} : { state }),
      };
      const { rows, next } = await fillPage(
        pageOptions(query),
        (page) => estate.store.listTasks(filter, page),
        ({ id }) => isVisible(itself(id)),
        ({ id }) => id,
        ({ minions }) => minions.map(({ id }) => id),
      );
      const incarnation = await estate.incarnation();
      const items = rows.map((task) => viewTask(task, incarnation, Date.now()));
      return { status: 200, body: { items, next_cursor: writeCursor(next) } };
    },
  });
}

function getRoute(estate: Estate): Route {
  return defineRoute({
    method: 'GET',
    url: '/tasks/:task_id',
    permission: 'estate:read',
    scope: 'target',
    idempotency: 'ignored',
    response: zTaskDetail,
    async handle({ principal, params }) {
      const { task, incarnation } = await findTask(estate, params.task_id);
      await requireOn(principal, 'estate:read', itself(task.id));
      const isVisible = await selectOn(principal, 'estate:read');
      const pillars = (await readPillars(estate, task.id)).filter(isVisible);
      const named = pillars.map(({ pid, name, isSecret }) => ({ pid, name, is_secret: isSecret }));
      const view = { ...viewTask(task, incarnation, Date.now()), pillars: named };
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

/** Forwards only, so If-Match may be left out. */
function stateRoute(estate: Estate): Route {
  return defineRoute({
    method: 'POST',
    url: '/tasks/:task_id/state',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    body: zTaskStateChange,
    response: zTaskView,
    async handle({ principal, params, body, conditions }) {
      const { task, incarnation } = await findTask(estate, params.task_id);
      const { id, tick: expectTick } = task;
      const { state } = body;
      await requireOn(principal, 'pillar:write', itself(id));
      if (conditions.ifMatch !== undefined) checkIfMatch(conditions, etagOf(id, incarnation, expectTick));
      const { clock, atMs } = await estate.write({
        by: principal.sub,
        mutations: [{ kind: 'task.setState', id, expectTick, state }],
        events: [taskEvent('task.state_changed', { ...task, state })],
      });
      const endedAtMs = isEndState(state) ? atMs : undefined;
      const changed = { state, endedAtMs, updatedBy: principal.sub, updatedAtMs: atMs, tick: clock.tick };
      const view = viewTask({ ...task, ...changed }, clock.incarnation, atMs);
      return { status: 200, body: view, etag: view.etag };
    },
  });
}

/** Takes its pillars with it. */
function deleteRoute(estate: Estate): Route {
  return defineRoute({
    method: 'DELETE',
    url: '/tasks/:task_id',
    permission: 'pillar:write',
    scope: 'target',
    idempotency: 'ignored',
    response: zNothing,
    async handle({ principal, params, conditions }) {
      requireIfMatch(conditions);
      const { task, incarnation } = await findTask(estate, params.task_id);
      const { id, tick: expectTick } = task;
      await requireOn(principal, 'pillar:write', itself(id));
      checkIfMatch(conditions, etagOf(id, incarnation, expectTick));
      const pillars = await readPillars(estate, id);
      const drops = pillars.map(
        ({ pid, tick }) => ({ kind: 'pillar.delete', pid, expectTick: tick }) as const,
      );
      await estate.write({
        by: principal.sub,
        mutations: [...drops, { kind: 'task.delete', id, expectTick }],
        events: [
          ...pillars.map((one) => pillarEvent('pillar.deleted', one)),
          taskEvent('task.deleted', task),
        ],
      });
      return { status: 204 };
    },
  });
}

async function readPillars(estate: Estate, id: string) {
  const { tgtType, tgtId, pillarenv } = taskTarget(id);
  const own = { tgtTypes: [tgtType], tgtId, pillarenv };
  return await Array.fromAsync(everyRow((page) => estate.store.listPillars(own, page)));
}

export async function findTask(
  estate: Estate,
  id: string | undefined,
): Promise<{ task: TaskRecord; incarnation: string }> {
  const task = await estate.store.getTask(id ?? '');
  if (task === undefined) throw new ColonnadeError('not_found', 'there is no such task');
  return { task, incarnation: await estate.incarnation() };
}

function itself(id: string): Target {
  return { tgtType: 'task', tgtId: id };
}

function pathOf(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`;
}
