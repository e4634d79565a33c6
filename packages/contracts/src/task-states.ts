import { z } from 'zod';
import { int } from './codec.ts';

/**
 * Which tasks live, for services that do not read the estate: a NATS key-value bucket that pillar-api writes. An entry
 * is in the bucket as long as its task can have an identity; a beat says how fresh all of it is.
 */
export const TASK_STATES_BUCKET = 'colonnade-tasks';
export const TASK_STATES_STREAM = `KV_${TASK_STATES_BUCKET}`;
const PREFIX = `$KV.${TASK_STATES_BUCKET}.`;
export const TASK_STATES_SUBJECTS = `${PREFIX}>`;
export const TASK_BEAT_SUBJECT = `${PREFIX}beat`;
/** A view without a beat for longer than this says nothing any more, milliseconds. */
export const TASK_STATES_STALE_MS = 5000;

/** The subject of a task's entry; ids from before our rules may hold what no subject can. */
export function taskStateSubject(task: string): string {
  return `${PREFIX}task.${Buffer.from(task, 'utf8').toString('base64url')}`;
}

/** The task an entry is about; undefined for anything else. */
export function taskOfSubject(subject: string): string | undefined {
  const key = subject.startsWith(`${PREFIX}task.`) ? subject.slice(PREFIX.length + 5) : undefined;
  return key === undefined ? undefined : Buffer.from(key, 'base64url').toString('utf8');
}

export const zTaskEntry = z.strictObject({
  v: int({ min: 1, max: 1 }),
  live: z.boolean(),
  /** Milliseconds since the epoch; null: as long as it has not ended. */
  expires_at_ms: int({ min: 0 }).nullable(),
});
export type TaskEntry = z.infer<typeof zTaskEntry>;

/** Written after everything that was known when it was: who has it has all of that. */
export const zTaskBeat = z.strictObject({ v: int({ min: 1, max: 1 }), count: int({ min: 0 }) });
