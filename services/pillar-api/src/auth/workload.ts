import { ColonnadeError, ENROLMENT_TOKEN, WORKLOAD_AUDIENCE, type Workload } from '@colonnade/contracts';
import { type EstateStore, isEndState } from '@colonnade/estate-store';
import {
  createWorkloadVerifier,
  type KeySet,
  looksLikeWorkloadToken,
  type WorkloadIdentity,
} from '@colonnade/identity';
import type { Permission } from './permissions.ts';

type StateStore = Pick<EstateStore, 'getTask' | 'getMaster' | 'getMinion' | 'getService'>;

/** Who comes with an identity of a workload, or with a one-time token for the first one. */
export type WorkloadCredential =
  | { kind: 'identity'; identity: WorkloadIdentity; token: string }
  | { kind: 'enrolment'; token: string };

export type Workloads = {
  /** Undefined when the token is of another kind. @throws ColonnadeError `unauthorized`, `kms_unavailable` */
  authenticate(token: string, nowMs: number): Promise<WorkloadCredential | undefined>;
};

/** What each may do here (seed 003): nothing of it is for anybody else's pillars. */
export const RIGHTS_OF: Readonly<Record<Workload['kind'] | 'enrolment', readonly Permission[]>> = {
  task: ['identity:self', 'identity:pillars'],
  minion: ['identity:self', 'identity:pillars'],
  master: ['identity:self', 'identity:minions'],
  service: ['identity:self', 'event:publish'],
  enrolment: ['identity:enrol'],
};

/** Groups of workloads in records. */
export function groupOf(credential: WorkloadCredential): string {
  return credential.kind === 'enrolment'
    ? 'colonnade:enrolments'
    : `colonnade:${credential.identity.workload.kind}s`;
}

/**
 * Checks identities by their signature and by the estate: a task that is unknown or has ended is refused however good its
 * token is, and so is a host whose enrolment was taken back (seed 003).
 */
export function createWorkloads(store: StateStore, keys: KeySet): Workloads {
  const verify = createWorkloadVerifier({ keys, audience: WORKLOAD_AUDIENCE });
  return {
    async authenticate(token, nowMs) {
      if (ENROLMENT_TOKEN.test(token)) return { kind: 'enrolment', token };
      if (!looksLikeWorkloadToken(token)) return undefined;
      const identity = await verify(token);
      if (!(await isAlive(store, identity, nowMs)))
        throw new ColonnadeError(
          'unauthorized',
          'the identity is refused: its workload is unknown, has ended or was taken back',
        );
      return { kind: 'identity', identity, token };
    },
  };
}

async function isAlive(
  store: StateStore,
  { workload, sid }: WorkloadIdentity,
  nowMs: number,
): Promise<boolean> {
  switch (workload.kind) {
    case 'task': {
      const task = await store.getTask(workload.task);
      if (task === undefined || isEndState(task.state) || task.templateId !== workload.template) return false;
      return task.expiresAtMs === undefined || task.expiresAtMs > nowMs;
    }
    case 'minion':
      if ((await store.getMinion(workload.master, workload.minion)) === undefined) return false;
      return isEnrolled(store, workload.master, sid);
    case 'master':
      return isEnrolled(store, workload.master, sid);
    case 'service':
      return (
        sid !== undefined && (await store.getService(workload.service))?.enrolmentIds.includes(sid) === true
      );
  }
}

async function isEnrolled(store: StateStore, id: string, sid: string | undefined): Promise<boolean> {
  const master = await store.getMaster(id);
  return sid !== undefined && master?.tokenIds.includes(sid) === true;
}

/**
 * The credential of a request: `Authorization: Bearer`, or `X-Colonnade-Token`, where something in between takes the
 * other one for itself. Two that differ are none.
 * @throws ColonnadeError `unauthorized`
 */
export function tokenOf(headers: {
  authorization?: string | undefined;
  'x-colonnade-token'?: string | string[] | undefined;
}): string {
  const { authorization, 'x-colonnade-token': own } = headers;
  if (authorization === undefined && own === undefined)
    throw new ColonnadeError('unauthorized', 'send Authorization: Bearer <token>, or X-Colonnade-Token');
  const bearer =
    authorization === undefined ? undefined : (/^Bearer +([!-~]+)$/iu.exec(authorization)?.[1] ?? '');
  if (own === undefined) return bearer ?? '';
  const given = typeof own === 'string' && /^[!-~]+$/u.test(own) ? own : '';
  if (bearer === undefined || bearer === given) return given;
  throw new ColonnadeError('unauthorized', 'Authorization and X-Colonnade-Token differ: send one');
}
