import { ColonnadeError, zIdentityToken } from '@colonnade/contracts';
import { isEndState } from '@colonnade/estate-store';
import { requireOn } from '../auth/scope.ts';
import type { Estate } from '../estate.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { issueTaskToken } from '../identity/issue-task.ts';
import type { Kms } from '../kms.ts';
import { findTask } from './tasks.ts';

/**
 * `POST /tasks/{task_id}/token`: one more token of a task that lives, for an operator. It opens the task's secrets, so
 * it asks for the right to reveal them; of the template it reads what the caller saved.
 */
export function taskTokenRoute(estate: Estate, kms: Kms): Route {
  return defineRoute({
    method: 'POST',
    url: '/tasks/:task_id/token',
    permission: 'secret:reveal',
    scope: 'target',
    idempotency: 'refused',
    response: zIdentityToken,
    async handle({ principal, params, call }) {
      const { task } = await findTask(estate, params.task_id);
      const target = { tgtType: 'task', tgtId: task.id } as const;
      await requireOn(principal, 'secret:reveal', target);
      await requireOn(principal, 'pillar:write', target);
      if (isEndState(task.state)) throw new ColonnadeError('conflict', 'the task has ended');
      return { status: 201, body: await issueTaskToken(kms, principal, task, call) };
    },
  });
}
