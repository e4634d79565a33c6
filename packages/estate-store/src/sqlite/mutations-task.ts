import type { Mutation } from '../port.ts';
import type { TaskCopy, TaskState } from '../port-tasks.ts';
import type { PackedTemplatePut } from '../rules/batch.ts';
import { checkExpect, checkFree } from '../rules/expect.ts';
import { minionCursor } from '../rules/page.ts';
import { checkNextState, checkTaskCopy, checkTaskDraft, checkTaskFor, isEndState } from '../rules/task.ts';
import { writeList } from './rows.ts';
import { hasRow, type Tx } from './transaction.ts';

type Of<K extends Mutation['kind']> = Extract<Mutation, { kind: K }>;

/** @throws ColonnadeError already_exists | not_found | precondition_failed */
export function putTemplate({ db, by, atMs, tick }: Tx, { expect, record }: PackedTemplatePut): void {
  const { id, name, schema } = record;
  checkExpect('template', db.get<{ tick: number }>('SELECT tick FROM templates WHERE id = ?', id), expect);
  db.run(
    `INSERT INTO templates VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET name = excluded.name, schema = excluded.schema,
       updated_by = excluded.updated_by, updated_at_ms = excluded.updated_at_ms, tick = excluded.tick`,
    ...[id, name, schema, by, by, atMs, atMs, tick],
  );
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while something hangs on it */
export function deleteTemplate({ db }: Tx, { id, expect }: Of<'template.delete'>): void {
  checkExpect('template', db.get<{ tick: number }>('SELECT tick FROM templates WHERE id = ?', id), expect);
  const tasks = "SELECT 1 FROM tasks WHERE template_id = ? AND state IN ('created', 'running')";
  checkFree('template', {
    'default pillars': hasRow(db, "SELECT 1 FROM pillars WHERE tgt_type = 'task_tpl' AND tgt_id = ?", id),
    'tasks that have not ended': hasRow(db, tasks, id),
  });
  db.run('DELETE FROM templates WHERE id = ?', id);
}

/** @throws ColonnadeError already_exists | not_found | unknown_minion | bad_request */
export function createTask(tx: Tx, { record }: Of<'task.create'>): void {
  const { db } = tx;
  const { id, templateId, minions, collections } = record;
  checkTaskDraft(record);
  checkExpect('task', db.get<{ tick: number }>('SELECT tick FROM tasks WHERE id = ?', id), 'absent');
  checkTaskFor(record, {
    template: hasRow(db, 'SELECT 1 FROM templates WHERE id = ?', templateId),
    minion: (at) => {
      const { master, id: minion } = minions[at] as { master: string; id: string };
      return hasRow(db, 'SELECT 1 FROM minions WHERE master = ? AND id = ?', master, minion);
    },
    collection: (at) => hasRow(db, 'SELECT 1 FROM collections WHERE id = ?', collections[at] as string),
  });
  insertTask(tx, { ...record, state: 'created', endedAtMs: undefined });
}

/** @throws ColonnadeError already_exists | not_found | bad_request */
export function copyTask(tx: Tx, { record }: Of<'task.copy'>): void {
  const { id, templateId } = record;
  checkExpect('task', tx.db.get<{ tick: number }>('SELECT tick FROM tasks WHERE id = ?', id), 'absent');
  checkTaskCopy(record, hasRow(tx.db, 'SELECT 1 FROM templates WHERE id = ?', templateId));
  insertTask(tx, record);
}

function insertTask(tx: Tx, { id, templateId, state, minions, collections, ...times }: TaskCopy): void {
  const { db, by, atMs, tick } = tx;
  db.run(
    `INSERT INTO tasks (id, template_id, state, minions, collections, created_by, updated_by, created_at_ms,
       updated_at_ms, expires_at_ms, ended_at_ms, tick) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[id, templateId, state, writeList(minions.map(minionCursor)), writeList(collections)],
    ...[by, by, atMs, atMs, times.expiresAtMs ?? null, times.endedAtMs ?? null, tick],
  );
  tx.change(`task:${id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | conflict (no such way from state to state) */
export function setTaskState(tx: Tx, { id, expectTick, state }: Of<'task.setState'>): void {
  checkNextState(findTask(tx, id, expectTick).state, state);
  tx.db.run(
    'UPDATE tasks SET state = ?, updated_by = ?, updated_at_ms = ?, ended_at_ms = ?, tick = ? WHERE id = ?',
    ...[state, tx.by, tx.atMs, isEndState(state) ? tx.atMs : null, tx.tick, id],
  );
  tx.change(`task:${id}`);
}

/** @throws ColonnadeError not_found | precondition_failed | conflict while it has not ended or has pillars */
export function deleteTask(tx: Tx, { id, expectTick }: Of<'task.delete'>): void {
  const { state } = findTask(tx, id, expectTick);
  const pillars = "SELECT 1 FROM pillars WHERE tgt_type = 'task' AND tgt_id = ?";
  checkFree('task', { 'not ended': !isEndState(state), pillars: hasRow(tx.db, pillars, id) });
  tx.db.run('DELETE FROM tasks WHERE id = ?', id);
  tx.change(`task:${id}`);
}

function findTask({ db }: Tx, id: string, expectTick: number | undefined): { state: TaskState } {
  const found = db.get<{ state: TaskState; tick: number }>('SELECT state, tick FROM tasks WHERE id = ?', id);
  checkExpect('task', found, expectTick);
  return found as { state: TaskState };
}
