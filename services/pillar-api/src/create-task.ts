import { randomBytes, randomUUID } from 'node:crypto';
import { ColonnadeError, LIMITS, type NamedValue, type TaskCreate, taskTarget } from '@colonnade/contracts';
import type { EstateStore, Mutation, OutboxDraft, TaskDraft, TemplateRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';
import { requirePermission } from './auth/permissions.ts';
import { requireOn } from './auth/scope.ts';
import { pillarEvent, taskEvent } from './estate-events.ts';
import type { Input } from './http/route.ts';
import type { Kms } from './kms.ts';
import { checkOpenValue } from './pillar-value.ts';
import { openStored } from './routes/reveal.ts';
import { sealForStore } from './seal.ts';
import { draftDefaults, readDefaults } from './template-defaults.ts';
import type { Schemas } from './templates/schemas.ts';

export type CreateTaskDeps = {
  store: Pick<EstateStore, 'getTemplate' | 'listPillars'>;
  kms: Kms;
  schemas: Schemas;
};

type Asked = Pick<Input<unknown, unknown, TaskCreate>, 'principal' | 'call' | 'body'>;

type TaskDrafts = {
  record: TaskDraft;
  pillars: { pid: string; name: string; is_secret: boolean }[];
  mutations: Mutation[];
  events: OutboxDraft[];
};

/**
 * Seed 000, PillarService.create_for_task: a task with its pillars, and, when asked for, the same values as the caller's
 * defaults of the template; all for one transaction. Each secret is sealed anew for each place it is kept in.
 * @throws ColonnadeError `unprocessable` | `value_invalid` | `forbidden` | of crypto-kms
 */
export async function draftTask(deps: CreateTaskDeps, asked: Asked, nowMs: number): Promise<TaskDrafts> {
  const { body, principal } = asked;
  const template = await deps.store.getTemplate(body.tpl_id);
  if (template === undefined) throw refuse('tpl_id', 'no such template');
  await requireOn(principal, 'estate:read', { tgtType: 'task_tpl', tgtId: template.id });
  const target = taskTarget(newTaskId(nowMs));
  await requireOn(principal, 'pillar:write', { tgtType: 'task', tgtId: target.tgtId });
  const values = [...body.pillars, ...(await takeDefaults(deps, asked, template))];
  await checkValues(deps, asked, template, values);
  const drafts: TaskDrafts = {
    record: draftOf(body, target.tgtId, nowMs),
    ...{ pillars: [], mutations: [], events: [] },
  };
  drafts.mutations.push({ kind: 'task.create', record: drafts.record });
  drafts.events.push(taskEvent('task.created', { ...drafts.record, state: 'created' }));
  for (const { name, value, is_secret: isSecret = false } of values) {
    const context = { ...target, name };
    const kept = isSecret ? await sealForStore(deps.kms, asked, context, value) : value;
    const record = { pid: randomUUID(), ...context, value: kept, isSecret };
    drafts.mutations.push({ kind: 'pillar.create', record });
    drafts.events.push(pillarEvent('pillar.created', record));
    drafts.pillars.push({ pid: record.pid, name, is_secret: isSecret });
  }
  if (body.save_as_defaults !== true) return drafts;
  const change = { pillars: body.pillars, remove: [] };
  const saved = await draftDefaults(deps, asked, template.id, change);
  drafts.mutations.push(...saved.mutations);
  drafts.events.push(...saved.events);
  return drafts;
}

function draftOf(body: TaskCreate, id: string, nowMs: number): TaskDraft {
  const { tpl_id: templateId, minions = [], collections = [], expires_in_s: expiresInS } = body;
  return {
    ...{ id, templateId, collections },
    minions: minions.map((one) => ({ master: one.master, id: one.minion_id })),
    expiresAtMs: expiresInS === undefined ? undefined : nowMs + expiresInS * 1000,
  };
}

/** Ids in the order they were made, so that lists are too. */
function newTaskId(nowMs: number): string {
  return `${nowMs.toString(16).padStart(12, '0')}-${randomBytes(10).toString('hex')}`;
}

/** Values the caller saved before. Those of secrets are opened with a grant of his, and only on the way to a new seal. */
async function takeDefaults(
  deps: CreateTaskDeps,
  asked: Asked,
  template: TemplateRecord,
): Promise<NamedValue[]> {
  const names = asked.body.from_defaults ?? [];
  if (names.length === 0) return [];
  const saved = await readDefaults(deps.store, template.id, asked.principal.sub);
  const taken: NamedValue[] = [];
  for (const [at, name] of names.entries()) {
    const pillar = saved.find((one) => one.name === name);
    if (pillar === undefined) throw refuse(`from_defaults.${at}`, 'the caller saved no such default');
    await requireOn(asked.principal, 'estate:read', pillar);
    if (!pillar.isSecret) {
      taken.push({ name, value: pillar.value });
      continue;
    }
    requirePermission(asked.principal.permissions, 'secret:reveal');
    await requireOn(asked.principal, 'secret:reveal', pillar);
    const value = await openStored(deps.kms, asked.principal, pillar, asked.call);
    taken.push({ name, value, is_secret: true });
  }
  return taken;
}

async function checkValues(
  deps: CreateTaskDeps,
  { principal }: Asked,
  template: TemplateRecord,
  values: readonly NamedValue[],
): Promise<void> {
  if (values.length > LIMITS.pillarsPerTask) throw refuse('pillars', `more than ${LIMITS.pillarsPerTask}`);
  const instance: { [name: string]: Value } = Object.create(null);
  for (const { name, value } of values) {
    if (Object.hasOwn(instance, name))
      throw refuse('from_defaults', 'a name stands there twice, or in pillars too');
    await requireOn(principal, 'pillar:write', { tgtType: 'task', tgtId: '', name });
    checkOpenValue(value);
    instance[name] = value;
  }
  const faults = await deps.schemas.faultsOf(principal.rateKey, template.schema, instance);
  if (faults.length === 0) return;
  const secrets = new Set(values.filter((one) => one.is_secret === true).map(({ name }) => name));
  const told = faults.map(({ path, message }) => tell(path, message, secrets));
  throw refuse('pillars', `not what the schema of the template asks for: ${[...new Set(told)].join('; ')}`);
}

/** Within a secret even the names of keys are part of it, and a fault's text may hold one. */
function tell(path: string, message: string, secrets: ReadonlySet<string>): string {
  const [, first = ''] = path.split('/');
  const name = first.replaceAll('~1', '/').replaceAll('~0', '~');
  if (path !== '' && secrets.has(name)) return `/${first} does not fit`;
  return path === '' ? message : `${path} ${message}`;
}

function refuse(field: string, why: string): ColonnadeError {
  return new ColonnadeError('unprocessable', `${field}: ${why}`, { field });
}
