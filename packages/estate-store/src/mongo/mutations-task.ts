import type { Mutation } from '../port.ts';
import type { TaskCopy } from '../port-tasks.ts';
import type { PackedTemplatePut } from '../rules/batch.ts';
import { checkExpect, checkFree } from '../rules/expect.ts';
import { checkNextState, checkTaskCopy, checkTaskDraft, checkTaskFor, isEndState } from '../rules/task.ts';
import { minionKey, toNumber } from './documents.ts';
import { hasAny } from './mutations-fleet.ts';
import { INDEX } from './schema.ts';
import { fromTask, fromTemplate, type TaskDocument, toTemplate } from './task-documents.ts';
import { readTask } from './task-reads.ts';
import type { Tx } from './transaction.ts';

type Of<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export async function putTemplate(tx: Tx, { expect, record }: PackedTemplatePut): Promise<void> {
  const { tables, within, by, atMs, tick } = tx;
  const document = await tables.templates.findOne({ _id: record.id }, within);
  const found = document === null ? undefined : toTemplate(document);
  checkExpect('template', found, expect);
  const first = { createdBy: found?.createdBy ?? by, createdAtMs: found?.createdAtMs ?? atMs };
  const whole = fromTemplate({ ...record, ...first, updatedBy: by, updatedAtMs: atMs, tick });
  await tables.templates.replaceOne({ _id: record.id }, whole, { ...within, upsert: true });
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while something hangs on it */
export async function deleteTemplate(tx: Tx, { id, expect }: Of<'template.delete'>): Promise<void> {
  const { tables, within } = tx;
  const found = await tables.templates.findOne({ _id: id }, within);
  checkExpect('template', found === null ? undefined : { tick: toNumber(found.tick) }, expect);
  const open = { template_id: id, state: { $in: ['created', 'running'] } };
  checkFree('template', {
    'default pillars': await hasPillars(tx, 'task_tpl', id),
    'tasks that have not ended': await hasAny(tx, tables.tasks, open, INDEX.taskTemplate),
  });
  await tables.templates.deleteOne({ _id: id }, within);
}

/** @throws ColonnadeError already_exists | not_found | unknown_minion | bad_request */
export async function createTask(tx: Tx, { record }: Of<'task.create'>): Promise<void> {
  const { tables, within } = tx;
  const { id, templateId, minions, collections } = record;
  checkTaskDraft(record);
  checkExpect('task', await readTask(tables, within, id), 'absent');
  const minionKeys = minions.map(({ master, id: minion }) => minionKey(master, minion));
  const foundMinions = await tables.minions.find({ _id: { $in: minionKeys } }, within).toArray();
  const foundCollections = await tables.collections
    .find({ _id: { $in: [...collections] } }, within)
    .toArray();
  const known = new Set([...foundMinions, ...foundCollections].map(({ _id }) => _id));
  checkTaskFor(record, {
    template: await hasAny(tx, tables.templates, { _id: templateId }),
    minion: (at) => known.has(minionKeys[at] as string),
    collection: (at) => known.has(collections[at] as string),
  });
  await insertTask(tx, { ...record, state: 'created', endedAtMs: undefined });
}

/** @throws ColonnadeError already_exists | not_found | bad_request */
export async function copyTask(tx: Tx, { record }: Of<'task.copy'>): Promise<void> {
  const { tables, within } = tx;
  checkExpect('task', await readTask(tables, within, record.id), 'absent');
  checkTaskCopy(record, await hasAny(tx, tables.templates, { _id: record.templateId }));
  await insertTask(tx, record);
}

async function insertTask(tx: Tx, record: TaskCopy): Promise<void> {
  const { tables, within, by, atMs, tick } = tx;
  const written = { createdBy: by, updatedBy: by, createdAtMs: atMs, updatedAtMs: atMs, tick };
  const { expiresAtMs, endedAtMs } = record;
  await tables.tasks.insertOne(fromTask({ ...record, expiresAtMs, endedAtMs, ...written }), within);
  tx.change(`task:${record.id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | conflict (no such way from state to state) */
export async function setTaskState(tx: Tx, { id, expectTick, state }: Of<'task.setState'>): Promise<void> {
  const { tables, within, by, atMs, tick } = tx;
  const task = await findTask(tx, id, expectTick);
  checkNextState(task.state, state);
  const endedAtMs = isEndState(state) ? atMs : undefined;
  const whole: TaskDocument = fromTask({ ...task, state, endedAtMs, updatedBy: by, updatedAtMs: atMs, tick });
  await tables.tasks.replaceOne({ _id: id }, whole, within);
  tx.change(`task:${id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while it has not ended or has pillars */
export async function deleteTask(tx: Tx, { id, expectTick }: Of<'task.delete'>): Promise<void> {
  const { state } = await findTask(tx, id, expectTick);
  checkFree('task', { 'not ended': !isEndState(state), pillars: await hasPillars(tx, 'task', id) });
  await tx.tables.tasks.deleteOne({ _id: id }, tx.within);
  tx.change(`task:${id}`);
}

async function findTask({ tables, within }: Tx, id: string, expectTick: number | undefined) {
  const task = await readTask(tables, within, id);
  checkExpect('task', task, expectTick);
  return task as NonNullable<typeof task>;
}

function hasPillars(tx: Tx, tgtType: 'task' | 'task_tpl', tgtId: string): Promise<boolean> {
  return hasAny(tx, tx.tables.pillars, { tgt_type: tgtType, tgt_id: tgtId }, INDEX.pillarKey);
}
