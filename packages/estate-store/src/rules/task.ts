import { ColonnadeError, LIMITS, taskEnv, taskTemplateEnv, zUserSub } from '@colonnade/contracts';
import type { TaskCopy, TaskDraft, TaskState } from '../port-tasks.ts';

const AFTER: Readonly<Record<TaskState, readonly TaskState[]>> = {
  created: ['running', 'succeeded', 'failed', 'cancelled'],
  running: ['succeeded', 'failed', 'cancelled'],
  succeeded: [],
  failed: [],
  cancelled: [],
};

/** Whether a task in this state is over for good. */
export function isEndState(state: TaskState): boolean {
  return AFTER[state].length === 0;
}

/** @throws ColonnadeError conflict */
export function checkNextState(from: TaskState, to: TaskState): void {
  if (AFTER[from].includes(to)) return;
  throw new ColonnadeError('conflict', `a task that is ${from} cannot become ${to}`);
}

/** @throws ColonnadeError bad_request (nobody, somebody twice, too many) */
export function checkTaskDraft({ minions, collections }: TaskDraft): void {
  if (minions.length + collections.length === 0) {
    throw new ColonnadeError('bad_request', 'a task needs a minion or a collection', { field: 'minions' });
  }
  const keys = minions.map(({ master, id }) => `${master}/${id}`);
  checkList('minions', keys, LIMITS.minionsPerTask);
  checkList('collections', collections, LIMITS.collectionsPerTask);
}

function checkList(field: string, keys: readonly string[], max: number): void {
  if (keys.length > max) throw new ColonnadeError('bad_request', `a task has at most ${max}`, { field });
  if (new Set(keys).size === keys.length) return;
  throw new ColonnadeError('bad_request', 'the same is named twice', { field });
}

/** @throws ColonnadeError not_found, with the place of the template or of the first collection that is not there */
export function checkTaskFor(
  draft: TaskDraft,
  has: { template: boolean; minion: (at: number) => boolean; collection: (at: number) => boolean },
): void {
  if (!has.template) throw new ColonnadeError('not_found', 'no such template', { field: 'templateId' });
  const minion = draft.minions.findIndex((_, at) => !has.minion(at));
  if (minion >= 0) {
    throw new ColonnadeError('unknown_minion', 'the master has no such minion', {
      field: `minions.${minion}`,
    });
  }
  const collection = draft.collections.findIndex((_, at) => !has.collection(at));
  if (collection < 0) return;
  throw new ColonnadeError('not_found', 'no such collection', { field: `collections.${collection}` });
}

/** @throws ColonnadeError bad_request (nobody, somebody twice, too many, an end that is none) | not_found (template) */
export function checkTaskCopy(copy: TaskCopy, hasTemplate: boolean): void {
  checkTaskDraft(copy);
  const isOver = isEndState(copy.state);
  if (isOver !== (copy.endedAtMs !== undefined)) {
    throw new ColonnadeError('bad_request', 'a task has an end when its state is one', {
      field: 'endedAtMs',
    });
  }
  if (!isOver && !hasTemplate) {
    throw new ColonnadeError('not_found', 'no such template', { field: 'templateId' });
  }
}

/** @throws ColonnadeError not_found | conflict (it has ended) | bad_request (pillarenv of something else) */
export function checkTaskTarget(
  { tgtId, pillarenv }: { tgtId: string; pillarenv: string },
  found: { state: TaskState; isNew?: boolean } | undefined,
): void {
  if (found === undefined) throw new ColonnadeError('not_found', 'no such task', { field: 'tgtId' });
  if (isEndState(found.state) && found.isNew !== true)
    throw new ColonnadeError('conflict', 'the task has ended');
  if (pillarenv !== taskEnv(tgtId)) throw wrongEnv('task');
}

/** @throws ColonnadeError not_found | bad_request (pillarenv of something else) */
export function checkTemplateTarget(
  { tgtId, pillarenv }: { tgtId: string; pillarenv: string },
  isThere: boolean,
): void {
  if (!isThere) throw new ColonnadeError('not_found', 'no such template', { field: 'tgtId' });
  const prefix = taskTemplateEnv(tgtId, '');
  if (!pillarenv.startsWith(prefix) || !zUserSub.safeParse(pillarenv.slice(prefix.length)).success) {
    throw wrongEnv('template');
  }
}

function wrongEnv(what: string): ColonnadeError {
  return new ColonnadeError('bad_request', `the pillarenv is not that of the ${what}`, {
    field: 'pillarenv',
  });
}
