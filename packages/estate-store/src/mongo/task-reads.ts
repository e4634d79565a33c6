import type { Document } from 'mongodb';
import type { Page } from '../port.ts';
import type { TaskFilter, TaskReads, TaskRecord, TemplateRecord } from '../port-tasks.ts';
import { checkLimit, cutPage } from '../rules/page.ts';
import type { Tables } from './connection.ts';
import { INDEX } from './schema.ts';
import { toTask, toTemplate } from './task-documents.ts';

/** The queries of templates and tasks; see `reads.ts`. */

type Within = object;
type PageAsk = Parameters<TaskReads['listTemplates']>[0];

export async function readTemplate(tables: Tables, within: Within, id: string) {
  const found = await tables.templates.findOne({ _id: id }, within);
  return found === null ? undefined : toTemplate(found);
}

export async function readTask(tables: Tables, within: Within, id: string) {
  const found = await tables.tasks.findOne({ _id: id }, within);
  return found === null ? undefined : toTask(found);
}

export async function listTemplates(
  tables: Tables,
  within: Within,
  page: PageAsk,
): Promise<Page<TemplateRecord>> {
  checkLimit(page.limit);
  const options = { ...within, hint: INDEX.id, sort: { _id: 1 }, limit: page.limit + 1 } as const;
  const found = await tables.templates.find({ _id: { $gt: page.after ?? '' } }, options).toArray();
  return cutPage(found.map(toTemplate), page.limit, ({ id }) => id);
}

export async function listTasks(
  tables: Tables,
  within: Within,
  { templateId, state }: TaskFilter,
  page: PageAsk,
): Promise<Page<TaskRecord>> {
  checkLimit(page.limit);
  const wanted: Document = { _id: { $gt: page.after ?? '' } };
  if (templateId !== undefined) wanted.template_id = templateId;
  if (state !== undefined) wanted.state = state;
  const byState = state === undefined ? INDEX.id : INDEX.taskState;
  const hint = templateId === undefined ? byState : INDEX.taskTemplate;
  const options = { ...within, hint, sort: { _id: 1 }, limit: page.limit + 1 } as const;
  const found = await tables.tasks.find(wanted, options).toArray();
  return cutPage(found.map(toTask), page.limit, ({ id }) => id);
}
