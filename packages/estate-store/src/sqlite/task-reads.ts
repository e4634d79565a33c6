import type { Page } from '../port.ts';
import type { TaskFilter, TaskReads, TaskRecord, TaskState, TemplateRecord } from '../port-tasks.ts';
import { checkLimit, cutPage, readMinionCursor } from '../rules/page.ts';
import type { Db } from './connection.ts';
import { readList, readValue } from './rows.ts';

/** Rows of templates and tasks, their way to records, and the queries, each inside an open read transaction. */

type Written = {
  created_by: string;
  updated_by: string;
  created_at_ms: number;
  updated_at_ms: number;
  tick: number;
};
export type TemplateRow = Written & { id: string; name: string; schema: string };
/** `minions` is a JSON list of `master/id`, `collections` one of ids. */
export type TaskRow = Written & {
  id: string;
  template_id: string;
  state: string;
  minions: string;
  collections: string;
  expires_at_ms: number | null;
  ended_at_ms: number | null;
};

export function toTemplate(row: TemplateRow): TemplateRecord {
  const { id, name, schema } = row;
  return { id, name, schema: readValue(schema), ...toWritten(row) };
}

export function toTask(row: TaskRow): TaskRecord {
  return {
    id: row.id,
    templateId: row.template_id,
    state: row.state as TaskState,
    minions: readList(row.minions).map(readMinionCursor),
    collections: readList(row.collections),
    expiresAtMs: row.expires_at_ms ?? undefined,
    endedAtMs: row.ended_at_ms ?? undefined,
    ...toWritten(row),
  };
}

function toWritten(row: Written) {
  return {
    createdBy: row.created_by,
    updatedBy: row.updated_by,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
    tick: row.tick,
  };
}

export function readTemplate(db: Db, id: string): TemplateRecord | undefined {
  const row = db.get<TemplateRow>('SELECT * FROM templates WHERE id = ?', id);
  return row && toTemplate(row);
}

export function readTask(db: Db, id: string): TaskRecord | undefined {
  const row = db.get<TaskRow>('SELECT * FROM tasks WHERE id = ?', id);
  return row && toTask(row);
}

type PageAsk = Parameters<TaskReads['listTemplates']>[0];

export function listTemplates(db: Db, page: PageAsk): Page<TemplateRecord> {
  checkLimit(page.limit);
  const sql = 'SELECT * FROM templates WHERE id > ? ORDER BY id LIMIT ?';
  const found = db.all<TemplateRow>(sql, page.after ?? '', page.limit + 1).map(toTemplate);
  return cutPage(found, page.limit, ({ id }) => id);
}

export function listTasks(db: Db, { templateId, state }: TaskFilter, page: PageAsk): Page<TaskRecord> {
  checkLimit(page.limit);
  const wanted = Object.entries({ template_id: templateId, state }).flatMap(([column, value]) =>
    value === undefined ? [] : [{ column, value }],
  );
  const where = ['id > ?', ...wanted.map(({ column }) => `${column} = ?`)].join(' AND ');
  const params = [page.after ?? '', ...wanted.map(({ value }) => value)];
  const sql = `SELECT * FROM tasks WHERE ${where} ORDER BY id LIMIT ?`;
  const found = db.all<TaskRow>(sql, ...params, page.limit + 1).map(toTask);
  return cutPage(found, page.limit, ({ id }) => id);
}
