import type { Value } from '@colonnade/value';

/** The part of the port that is about task templates and tasks. */

export type TemplateRecord = {
  id: string;
  /** For people. */
  name: string;
  /** A JSON Schema; what is one is for the caller to say. */
  schema: Value;
  createdBy: string;
  updatedBy: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  updatedAtMs: number;
  tick: number;
};

export const TASK_STATES = ['created', 'running', 'succeeded', 'failed', 'cancelled'] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** What a task is for: minions by name, and whoever is a member of these collections or of those below them. */
export type TaskTargets = {
  minions: readonly { master: string; id: string }[];
  collections: readonly string[];
};

export type TaskRecord = TaskTargets & {
  id: string;
  templateId: string;
  state: TaskState;
  createdBy: string;
  updatedBy: string;
  /** Milliseconds since the epoch. */
  createdAtMs: number;
  updatedAtMs: number;
  /** From then on nobody gets its pillars, whatever its state; undefined: as long as it has not ended. */
  expiresAtMs: number | undefined;
  /** When it came to one of the states that are an end. */
  endedAtMs: number | undefined;
  tick: number;
};

/** Who and when are those of the batch. */
export type TemplateDraft = Pick<TemplateRecord, 'id' | 'name' | 'schema'>;
export type TaskDraft = TaskTargets & Pick<TaskRecord, 'id' | 'templateId' | 'expiresAtMs'>;
/** A task as it was elsewhere; `endedAtMs` as its state has it. */
export type TaskCopy = TaskDraft & Pick<TaskRecord, 'state' | 'endedAtMs'>;

export type TaskMutation =
  | { kind: 'template.put'; expect: number | 'absent' | undefined; record: TemplateDraft }
  /** Refused (conflict) while it has default pillars, or tasks that have not ended. */
  | { kind: 'template.delete'; id: string; expect: number | undefined }
  /** In the state `created`. Template, minions and collections must exist (not_found, unknown_minion). */
  | { kind: 'task.create'; record: TaskDraft }
  /**
   * A task that was made elsewhere, in whatever state. Its template must exist (not_found) unless it has ended; its minions
   * and collections may be gone by now. In the same import it may also get pillars though it has ended.
   */
  | { kind: 'task.copy'; record: TaskCopy }
  /** Forwards only: created → running → an end, or at once to an end (conflict). */
  | { kind: 'task.setState'; id: string; expectTick: number | undefined; state: TaskState }
  /** Refused (conflict) while it has not ended, or has pillars. */
  | { kind: 'task.delete'; id: string; expectTick: number | undefined };

export type TaskFilter = { templateId?: string; state?: TaskState };

/** A page of templates or tasks, in the order of their ids. */
type PageAsk = { after: string | undefined; limit: number };
type Page<T> = { rows: readonly T[]; next: string | undefined };

export interface TaskReads {
  getTemplate(id: string): Promise<TemplateRecord | undefined>;
  listTemplates(page: PageAsk): Promise<Page<TemplateRecord>>;
  getTask(id: string): Promise<TaskRecord | undefined>;
  listTasks(filter: TaskFilter, page: PageAsk): Promise<Page<TaskRecord>>;
}
