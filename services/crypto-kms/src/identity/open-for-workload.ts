import { type Route, route } from '@colonnade/bus';
import { ColonnadeError, isOwnScope, kmsOpenForWorkload } from '@colonnade/contracts';
import type { TaskView } from '@colonnade/identity';
import { answerEach, checkBatchBytes, outcomeAnnotations } from '../batch.ts';
import { aadOf, checkOpenContext } from '../context.ts';
import { type Keys, openValue } from '../envelope.ts';
import type { Events } from '../events.ts';
import type { RateLimit } from '../rate-limit.ts';
import { type BeginAs, onRecord, type Trail, verifyOnRecord } from '../trail.ts';
import { userOf } from './routes.ts';
import type { WorkloadTokens } from './workload-token.ts';

export type WorkloadOpenDeps = {
  keys: Keys;
  tokens: Pick<WorkloadTokens, 'verify'>;
  tasks: Pick<TaskView, 'requireLive'>;
  limit: RateLimit;
  trail: Trail;
  events: Events;
};

/**
 * Opens what a workload may have, under its own token: pillar-api is not believed. A task that is unknown or has ended
 * opens nothing, nor does anybody while it is not known which tasks live.
 */
export function openForWorkloadRoute({ keys, tokens, tasks, limit, trail, events }: WorkloadOpenDeps): Route {
  return route(kmsOpenForWorkload, async ({ token, items }, call) => {
    const begin: BeginAs = (user) =>
      trail.begin({ verb: 'open', endpoint: kmsOpenForWorkload, call, user, caller: 'pillar-api' });
    const identity = await verifyOnRecord(begin, () => tokens.verify(token));
    const { workload, sub } = identity;
    const results = await onRecord(
      begin(userOf(identity)),
      async () => {
        if (workload.kind === 'task') await tasks.requireLive(workload.task);
        checkBatchBytes(items);
        if (!limit.take(sub, items.length))
          throw new ColonnadeError('rate_limited', 'the workload asks for more items per second than it may');
        return answerEach(items, call, ({ context, enc }) => {
          checkOpenContext(context);
          if (!isOwnScope(workload, context) || context.tgt_id.includes(':'))
            throw new ColonnadeError('kms_refused', 'the scope is not the one of this workload', {
              field: 'context',
            });
          return openValue(keys, aadOf(context), enc);
        });
      },
      outcomeAnnotations,
    );
    events.itemsAnswered('open.workload', results);
    return { items: results };
  });
}
