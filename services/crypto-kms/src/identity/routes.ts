import { type Route, route } from '@colonnade/bus';
import {
  ColonnadeError,
  kmsEnrol,
  kmsIssueTask,
  kmsMakeEnrolment,
  kmsRenewWorkload,
  type ObjectRef,
  WORKLOAD_AUDIENCE,
  type Workload,
  workloadSubject,
} from '@colonnade/contracts';
import type { TaskView, WorkloadIdentity } from '@colonnade/identity';
import type { GrantGuard } from '../grant-guard.ts';
import type { Revocations } from '../revocations.ts';
import { type BeginAs, changeOnRecord, onRecord, type Trail, verifyOnRecord } from '../trail.ts';
import type { Enrolments } from './enrolments.ts';
import type { WorkloadTokens } from './workload-token.ts';

export type IdentityDeps = {
  tokens: WorkloadTokens;
  enrolments: Enrolments;
  revocations: Pick<Revocations, 'isRevoked'>;
  tasks: Pick<TaskView, 'requireLive'>;
  /** For whom else tokens may be made. */
  audiences: readonly string[];
  guard: GrantGuard;
  trail: Trail;
};

/** Groups of workloads in records, as a policy names them. */
const GROUP_OF: Readonly<Record<Workload['kind'], string>> = {
  task: 'colonnade:tasks',
  minion: 'colonnade:minions',
  master: 'colonnade:masters',
  service: 'colonnade:services',
};

/** How a workload reads on record. */
export function userOf({ sub, workload }: Pick<WorkloadIdentity, 'sub' | 'workload'>) {
  return { username: sub, groups: [GROUP_OF[workload.kind]] };
}

/** Identities of workloads (seed 003): made, renewed, enrolled. */
export function workloadRoutes(deps: IdentityDeps): Route[] {
  return [issueTaskRoute(deps), renewRoute(deps), makeEnrolmentRoute(deps), enrolRoute(deps)];
}

/**
 * With a grant of whoever makes the task: pillar-api's own password makes no identities. The user of the grant is the
 * owner, so nobody gets what another user saved of a template.
 */
function issueTaskRoute({ tokens, guard }: IdentityDeps): Route {
  return route(kmsIssueTask, (message, call) => {
    const { task, template } = message;
    const what = {
      ...{ endpoint: kmsIssueTask, message, call },
      // It opens whatever is a secret of the task.
      reveals: [{ tgt_type: 'task' as const }],
      objectRef: { resource: 'tasks', name: task, subresource: 'token' },
    };
    return guard(what, onRecord, ({ sub: owner }) => tokens.issue({ kind: 'task', task, template, owner }));
  });
}

/** The token it has is all a workload needs; a task that has ended gets no next one. */
function renewRoute({ tokens, tasks, audiences, trail }: IdentityDeps): Route {
  return route(kmsRenewWorkload, async ({ token, audience, algorithm, minion }, call) => {
    const begin = (user: Parameters<Trail['begin']>[0]['user'], objectRef?: ObjectRef) =>
      trail.begin({
        ...{ verb: 'renew', endpoint: kmsRenewWorkload, call, user, caller: 'pillar-api' },
        ...(objectRef === undefined ? {} : { objectRef }),
      });
    const identity = await verifyOnRecord(begin, () => tokens.verify(token));
    const { workload, sid, gen } = identity;
    return onRecord(begin(userOf(identity), refOf(workload)), async () => {
      if (workload.kind === 'task') await tasks.requireLive(workload.task);
      if (audience !== undefined && (audience === WORKLOAD_AUDIENCE || !audiences.includes(audience)))
        throw new ColonnadeError(
          'forbidden',
          'no token is made for this audience; see KMS_IDENTITY_AUDIENCES',
        );
      return tokens.issue(minion === undefined ? workload : minionOf(workload, minion), {
        ...{ sid, audience, algorithm, gen },
      });
    });
  });
}

function minionOf(workload: Workload, minion: string): Workload {
  if (workload.kind === 'master') return { kind: 'minion', master: workload.master, minion };
  throw new ColonnadeError('forbidden', "only a master's identity gives those of its minions");
}

function makeEnrolmentRoute({ enrolments, guard }: IdentityDeps): Route {
  return route(kmsMakeEnrolment, (message, call) => {
    const { workload, sid, lifetime_s } = message;
    if (workload.kind !== 'master' && workload.kind !== 'service')
      throw new ColonnadeError('bad_request', 'only masters and services enrol', { field: 'workload' });
    const what = {
      ...{ endpoint: kmsMakeEnrolment, message, call },
      objectRef: { ...refOf(workload), subresource: 'enrolments' },
    };
    return guard(what, changeOnRecord, () => enrolments.make(workload, sid, lifetime_s));
  });
}

function enrolRoute({ tokens, enrolments, revocations, trail }: IdentityDeps): Route {
  return route(kmsEnrol, async ({ token }, call) => {
    const begin: BeginAs = (user) =>
      trail.begin({ verb: 'enrol', endpoint: kmsEnrol, call, user, caller: 'pillar-api' });
    const { workload, sid } = await verifyOnRecord(begin, async () => {
      const used = await enrolments.use(token);
      if (revocations.isRevoked(used.sid))
        throw new ColonnadeError('unauthorized', 'the enrolment was revoked');
      return used;
    });
    const span = begin(userOf({ sub: workloadSubject(workload), workload }));
    return onRecord(span, async () => ({ ...(await tokens.issue(workload, { sid })), workload }));
  });
}

function refOf(workload: Workload): ObjectRef {
  switch (workload.kind) {
    case 'task':
      return { resource: 'tasks', name: workload.task };
    case 'minion':
      return { resource: 'minions', namespace: workload.master, name: workload.minion };
    case 'master':
      return { resource: 'masters', name: workload.master };
    case 'service':
      return { resource: 'services', name: workload.service };
  }
}
