import {
  type Call,
  ColonnadeError,
  taskTarget,
  toColonnadeError,
  type zTaskCreated,
} from '@colonnade/contracts';
import type { EstateStore, TaskRecord } from '@colonnade/estate-store';
import type { z } from 'zod';
import type { Principal } from '../auth/authenticate.ts';
import { requirePermission } from '../auth/permissions.ts';
import { requireOn } from '../auth/scope.ts';
import type { Events } from '../events.ts';
import type { Kms } from '../kms.ts';
import { tryIssueTaskToken } from './issue-task.ts';
import type { TaskStates } from './task-states.ts';

/** The identity a task has from its making on (seed 003). */
export type TaskIdentities = {
  /** @returns no identity, and why, where whoever makes the task can have none for it: the master reads its pillars then, as before */
  issue(principal: Principal, task: string, call: Call): Promise<Issued>;
};

type Issued = Pick<z.output<typeof zTaskCreated>, 'identity' | 'identity_refused'>;

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
      if (task === undefined) return without(new ColonnadeError('not_found', 'the task is gone'));
      const [{ token, fault }] = await Promise.all([
        issueTo(kms, principal, task, call),
        taskStates.announce(task),
      ]);
      if (token !== null) return { identity: token, identity_refused: null };
      if (fault !== undefined) events.taskWithoutIdentity({ task: id, code: fault.code });
      return without(fault ?? new ColonnadeError('unavailable', 'crypto-kms gave none'));
    },
  };
}

function without({ code, message: detail }: ColonnadeError): Issued {
  return { identity: null, identity_refused: { code, detail } };
}

/** It opens the task's secrets, whoever adds them: it takes the same right as a further token of the task. */
async function issueTo(
  kms: Pick<Kms, 'issueTask'>,
  principal: Principal,
  task: Pick<TaskRecord, 'id' | 'templateId'>,
  call: Call,
): ReturnType<typeof tryIssueTaskToken> {
  const { tgtType, tgtId } = taskTarget(task.id);
  try {
    requirePermission(principal.permissions, 'secret:reveal');
    await requireOn(principal, 'secret:reveal', { tgtType, tgtId });
  } catch (thrown) {
    return { token: null, fault: toColonnadeError(thrown) };
  }
  return await tryIssueTaskToken(kms, principal, task, call);
}
