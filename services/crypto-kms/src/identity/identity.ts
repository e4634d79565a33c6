import type { Bus, Route } from '@colonnade/bus';
import { IDENTITY_KEY, type PublicJwk, TASK_STATES_STREAM } from '@colonnade/contracts';
import { createTaskView } from '@colonnade/identity';
import type { KmsConfig } from '../config.ts';
import type { Keys } from '../envelope.ts';
import type { Events } from '../events.ts';
import type { GrantGuard } from '../grant-guard.ts';
import type { Keyring } from '../keyring/keyring.ts';
import { openKeyring } from '../keyring/keyring.ts';
import { rootKeysOf } from '../keyring/open-keys.ts';
import type { RateLimit } from '../rate-limit.ts';
import type { Revocations } from '../revocations.ts';
import type { Trail } from '../trail.ts';
import { type Enrolments, openEnrolments } from './enrolments.ts';
import { openForWorkloadRoute } from './open-for-workload.ts';
import { workloadRoutes } from './routes.ts';
import { createSigningKeys } from './signing-keys.ts';
import { createWorkloadTokens, type WorkloadTokens } from './workload-token.ts';

/** What identities of workloads are made with. */
export type WorkloadState = { keyring: Keyring | undefined; enrolments: Enrolments };

/**
 * Opens the keyring's key for identities, which is no other's: a KEK that old installs share can sign for nobody.
 * @throws ColonnadeError `misconfigured`
 */
export async function openWorkloadState(config: KmsConfig): Promise<WorkloadState> {
  const { root, oldRoot } = rootKeysOf(config);
  const { stateDir } = config;
  const prepublishMs = config.keyPrepublishS * 1000;
  const keyring =
    root === undefined
      ? undefined
      : await openKeyring({ stateDir, name: IDENTITY_KEY, root, oldRoot, prepublishMs });
  return { keyring, enrolments: await openEnrolments(stateDir, Date.now) };
}

export type Workloads = AsyncDisposable & {
  routes: readonly Route[];
  tokens: WorkloadTokens;
  jwks(): Promise<PublicJwk[]>;
};

/** The part of the service that is about workloads: its routes, and the public keys others verify with. */
export function createWorkloads(
  config: KmsConfig,
  state: WorkloadState,
  parts: {
    bus: Pick<Bus, 'readEntries'>;
    keys: Keys;
    revocations: Revocations;
    guard: GrantGuard;
    limit: RateLimit;
    trail: Trail;
    events: Events;
    nowS: () => number;
  },
): Workloads {
  const { bus, revocations, nowS, events } = parts;
  const signing = createSigningKeys(state.keyring);
  const tokens = createWorkloadTokens({ keys: signing, issuer: config.identityIssuer, revocations, nowS });
  const tasks = createTaskView({
    read: (afterSeq) => bus.readEntries(TASK_STATES_STREAM, afterSeq),
    onFault: events.taskStatesFault,
  });
  const { enrolments } = state;
  const audiences = config.identityAudiences ?? [];
  return {
    routes: [
      ...workloadRoutes({ ...parts, tokens, enrolments, tasks, audiences }),
      openForWorkloadRoute({ ...parts, tokens, tasks }),
    ],
    tokens,
    jwks: () => signing.jwks(),
    [Symbol.asyncDispose]: () => tasks[Symbol.asyncDispose](),
  };
}
