import { Long } from 'mongodb';
import type { TaskRecord, TaskState, TemplateRecord } from '../port-tasks.ts';
import { minionCursor, readMinionCursor } from '../rules/page.ts';
import { readText, toNumber } from './documents.ts';

/** Documents of templates and tasks, and their way to records and back. Ticks are int64, times dates. */

type Written = { created_by: string; updated_by: string; created_at: Date; updated_at: Date; tick: Long };

/** `schema` is canonical text: a JSON Schema has fields with `$`, and nobody searches in it. */
export type TemplateDocument = Written & { _id: string; name: string; schema: string };

/** `minions` as `master/id`. */
export type TaskDocument = Written & {
  _id: string;
  template_id: string;
  state: TaskState;
  minions: readonly string[];
  collections: readonly string[];
  expires_at: Date | null;
  ended_at: Date | null;
};

export function toTemplate(document: TemplateDocument): TemplateRecord {
  const { _id: id, name, schema } = document;
  return { id, name, schema: readText(schema), ...toWritten(document) };
}

/** The schema comes as the text it is kept as. */
export function fromTemplate(record: Omit<TemplateRecord, 'schema'> & { schema: string }): TemplateDocument {
  const { id, name, schema } = record;
  return { _id: id, name, schema, ...fromWritten(record) };
}

export function toTask(document: TaskDocument): TaskRecord {
  const { _id: id, template_id: templateId, state, minions, collections } = document;
  return {
    ...{ id, templateId, state, minions: minions.map(readMinionCursor), collections },
    expiresAtMs: document.expires_at?.getTime(),
    endedAtMs: document.ended_at?.getTime(),
    ...toWritten(document),
  };
}

export function fromTask(record: TaskRecord): TaskDocument {
  const { id, templateId, state, minions, collections, expiresAtMs, endedAtMs } = record;
  return {
    ...{ _id: id, template_id: templateId, state },
    ...{ minions: minions.map(minionCursor), collections: [...collections] },
    expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs),
    ended_at: endedAtMs === undefined ? null : new Date(endedAtMs),
    ...fromWritten(record),
  };
}

function toWritten(document: Written) {
  return {
    createdBy: document.created_by,
    updatedBy: document.updated_by,
    createdAtMs: document.created_at.getTime(),
    updatedAtMs: document.updated_at.getTime(),
    tick: toNumber(document.tick),
  };
}

function fromWritten(record: Omit<TemplateRecord, 'id' | 'name' | 'schema'>): Written {
  return {
    created_by: record.createdBy,
    updated_by: record.updatedBy,
    created_at: new Date(record.createdAtMs),
    updated_at: new Date(record.updatedAtMs),
    tick: Long.fromNumber(record.tick),
  };
}
