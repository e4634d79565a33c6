import { encodeTree, zInventoryFacts } from '@colonnade/contracts';
import { checkNextState, isEndState, type TaskCopy, type TaskRecord } from '@colonnade/estate-store';
import { inventoryEvent, taskEvent, templateEvent } from '../estate-events.ts';
import { viewTime } from '../views.ts';
import {
  isUnchanged,
  may,
  type Of,
  type Planned,
  type Planning,
  refuse,
  shown,
  unknownMaster,
} from './plan.ts';

/** The plans for what came after pillars: inventories, templates and tasks. They are compared as in `plan.ts`. */

/** @throws ColonnadeError unknown_master | forbidden */
export async function planInventory(
  { principal, lookup }: Planning,
  asked: Of<'inventory'>,
): Promise<Planned> {
  const { master, minion_id: id, facts: told } = asked;
  if ((await lookup.getMaster(master)) === undefined) throw unknownMaster();
  const found = await lookup.getInventory(master, id);
  const facts = encodeTree(zInventoryFacts, told);
  const values = found === undefined ? { after: facts } : { before: found.facts, after: facts };
  const planned = { kind: 'inventory', key: `${master}/${id}`, ...values } as const;
  if (isUnchanged(planned)) return { ...planned, change: undefined };
  may(principal, 'minion:write');
  const state = (await lookup.getMinion(master, id)) === undefined ? 'pending' : 'accepted';
  return {
    ...planned,
    change: { kind: 'inventory.put', expect: found?.tick ?? 'absent', record: { master, id, facts } },
    event: inventoryEvent('minion.inventory-received', { master, id, facts: told, state }),
  };
}

/** @throws ColonnadeError unprocessable (no JSON Schema) | forbidden */
export async function planTemplate(
  { principal, lookup, schemas }: Planning,
  asked: Of<'template'>,
): Promise<Planned> {
  const { id, name, schema } = asked;
  const found = await lookup.getTemplate(id);
  const view = (of: Pick<typeof asked, 'name' | 'schema'>) => ({ name: of.name, schema: of.schema });
  const planned = { kind: 'template', key: id, ...shown(found && view(found), view(asked)) } as const;
  if (isUnchanged(planned)) return { ...planned, change: undefined };
  may(principal, 'pillar:write');
  await schemas.check(principal.rateKey, schema);
  const record = { id, name, schema };
  return {
    ...planned,
    change: { kind: 'template.put', expect: found?.tick ?? 'absent', record },
    event: templateEvent(`template.${found === undefined ? 'created' : 'updated'}`, record),
  };
}

/**
 * A task is taken as it is, ended ones too. Of one that is there only the state changes, forwards.
 * @throws ColonnadeError unprocessable | conflict (no such way from state to state) | forbidden
 */
export async function planTask({ principal, lookup }: Planning, asked: Of<'task'>): Promise<Planned> {
  const found = await lookup.getTask(asked.id);
  const copy = copyOf(asked, found);
  const planned = { kind: 'task', key: asked.id, ...shown(found && viewOf(found), viewOf(copy)) } as const;
  if (isUnchanged(planned)) return { ...planned, change: undefined };
  may(principal, 'pillar:write');
  if (found === undefined) {
    const isLive = !isEndState(copy.state);
    if (isLive && (await lookup.getTemplate(copy.templateId)) === undefined) {
      throw refuse('tpl_id', 'no such template; it must be in the estate, or stand before in the file');
    }
    return {
      ...planned,
      change: { kind: 'task.copy', record: copy },
      event: taskEvent('task.created', copy),
    };
  }
  const { state: _before, ended_at: _ended, ...before } = viewOf(found);
  for (const [field, value] of Object.entries(before)) {
    const now = viewOf(copy)[field as keyof typeof before];
    if (JSON.stringify(now) !== JSON.stringify(value)) throw refuse(field, 'of a task is not changed');
  }
  if (found.state === copy.state) throw refuse('ended_at', 'of a task is not changed');
  checkNextState(found.state, copy.state);
  const { id, state } = copy;
  return {
    ...planned,
    change: { kind: 'task.setState', id, expectTick: found.tick, state },
    event: taskEvent('task.state_changed', copy),
  };
}

function copyOf(asked: Of<'task'>, found: TaskRecord | undefined): TaskCopy {
  const { id, tpl_id: templateId, state, minions = [], collections = [] } = asked;
  if (minions.length + collections.length === 0)
    throw refuse('minions', 'a task needs a minion or a collection');
  const targets = minions.map((one) => ({ master: one.master, id: one.minion_id }));
  checkOnce(
    'minions',
    targets.map((one) => `${one.master}/${one.id}`),
  );
  checkOnce('collections', collections);
  const ended = readTime(asked.ended_at);
  const isOver = isEndState(state);
  if (ended !== undefined && !isOver) throw refuse('ended_at', `a task that is ${state} has not ended`);
  return {
    ...{ id, templateId, state, minions: targets, collections },
    expiresAtMs: readTime(asked.expires_at),
    endedAtMs: isOver ? (ended ?? found?.endedAtMs ?? Date.now()) : undefined,
  };
}

function checkOnce(field: string, all: readonly string[]): void {
  if (new Set(all).size !== all.length) throw refuse(field, 'the same is named twice');
}

function readTime(text: string | null | undefined): number | undefined {
  return text === null || text === undefined ? undefined : Date.parse(text);
}

/** As in the file. */
function viewOf(task: TaskCopy) {
  return {
    tpl_id: task.templateId,
    state: task.state,
    minions: task.minions.map((one) => ({ master: one.master, minion_id: one.id })),
    collections: [...task.collections],
    expires_at: task.expiresAtMs === undefined ? null : viewTime(task.expiresAtMs),
    ended_at: task.endedAtMs === undefined ? null : viewTime(task.endedAtMs),
  };
}
