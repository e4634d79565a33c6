import type { SQLInputValue } from 'node:sqlite';
import { canonicalText } from '@colonnade/value';
import type { TaskRecord, TemplateRecord } from '../port-tasks.ts';
import { minionCursor } from '../rules/page.ts';
import type { TableIo } from './archive.ts';
import { writeList } from './rows.ts';
import { toTask, toTemplate } from './task-reads.ts';

/** Templates and tasks of an estate file that is read or filled whole; see `archive.ts`. */
export const TASK_IO: { readonly templates: TableIo<TemplateRecord>; readonly tasks: TableIo<TaskRecord> } = {
  templates: {
    select: {
      sql: 'SELECT * FROM templates WHERE id > ? ORDER BY id',
      first: [''],
      keyOf: (row) => [row.id],
    },
    toRow: toTemplate,
    insert: (db, row) =>
      db.run(
        'INSERT INTO templates VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
        ...[row.id, row.name, canonicalText(row.schema), ...writtenColumns(row)],
      ),
  },
  tasks: {
    select: { sql: 'SELECT * FROM tasks WHERE id > ? ORDER BY id', first: [''], keyOf: (row) => [row.id] },
    toRow: toTask,
    insert: (db, row) =>
      db.run(
        `INSERT INTO tasks (id, template_id, state, minions, collections, expires_at_ms, ended_at_ms, created_by,
           updated_by, created_at_ms, updated_at_ms, tick) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ...[row.id, row.templateId, row.state, writeList(row.minions.map(minionCursor))],
        ...[writeList(row.collections), row.expiresAtMs ?? null, row.endedAtMs ?? null],
        ...writtenColumns(row),
      ),
  },
};

function writtenColumns(row: Omit<TemplateRecord, 'id' | 'name' | 'schema'>): SQLInputValue[] {
  return [row.createdBy, row.updatedBy, row.createdAtMs, row.updatedAtMs, row.tick];
}
