import type { Call, zIdentityToken } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import type { z } from 'zod';
import type { Principal } from '../auth/authenticate.ts';
import type { Events } from '../events.ts';
import type { Kms } from '../kms.ts';
import { tryIssueTaskToken } from './issue-task.ts';
import type { TaskStates } from './task-states.ts';

/** The identity a task has from its making on (seed 003). */
export type TaskIdentities = {
  /** @returns null where whoever makes the task can have none for it: the master reads its pillars then, as before */
  issue(principal: Principal, task: string, call: Call): Promise<z.output<typeof zIdentityToken> | null>;
};

export function createTaskIdentities(parts: {
  store: Pick<EstateStore, 'getTask'>;
  kms: Pick<Kms, 'issueTask'>;
  taskStates: Pick<TaskStates, 'announce'>;
  events: Pick<Events, 'taskWithoutIdentity'>;
}): TaskIdentities {
  const { store, kms, taskStates, events } = parts;
  return {
    async issue(principal, id, call) {
      const task = await store.getTask(id);
      if (task === undefined) return null;
      const [{ token, fault }] = await Promise.all([
        tryIssueTaskToken(kms, principal, task, call),
        taskStates.announce(task),
      ]);
      if (fault !== undefined) events.taskWithoutIdentity({ task: id, code: fault.code });
      return token;
    },
  };
}
