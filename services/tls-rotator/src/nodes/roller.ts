import type { TlsStep } from '@colonnade/contracts';
import type { Source } from '../source.ts';
import type { IngressTls, OidcSpec } from '../spec.ts';
import type { NodeStatus, Status } from '../status.ts';

export type RollJob = {
  ingress: IngressTls;
  oidc: OidcSpec;
  /** Undefined: there is none that may be written; what was begun is finished all the same. */
  source: Source | undefined;
  /** Since when every Secret holds this source, milliseconds since 1970. */
  servedSinceMs: number | undefined;
  /** No node is begun: paused, or on its way out. */
  finishOnly: boolean;
  status: Status;
  /** Told while a node is worked on; must not throw. */
  onProgress: (result: RollResult) => Promise<void>;
  /** Whether another source or spec is wanted by now than this one. */
  isOutdated: () => boolean;
  /** The rotator is being ended: whoever comes next goes on. */
  stop: AbortSignal;
};

export type PlanJob = Pick<RollJob, 'ingress' | 'oidc' | 'source' | 'servedSinceMs' | 'status'> &
  Partial<Pick<RollJob, 'finishOnly'>>;

export type RollResult = {
  /** `done`: every node trusts the source and runs with it. */
  state: 'done' | 'working' | 'stopped';
  reason: string;
  message: string;
  nodes: readonly NodeStatus[];
  stopped?: NonNullable<Status['stopped']>;
  /** Something is begun and not finished. */
  unfinished: boolean;
  /** Look again after so long, milliseconds. */
  againMs?: number;
};

/** What would be done on one node; `done`: it needs nothing. */
export type NodeStep = { name: string; does: TlsStep['does'] | 'done'; why: string };

/** Brings nodes to what they have to trust, one after the other. */
export type NodeRoller = AsyncDisposable & {
  /**
   * Looks at every node and works on one, until that one is finished or has to wait. Once the API server of a node is
   * on its way down nothing but the node itself is asked: the cluster's API may be the one that is away.
   */
  roll(job: RollJob): Promise<RollResult>;
  /**
   * Looks at every node, through connections of its own, and tells what `roll` would do, in its order. Changes nothing.
   * @throws ColonnadeError `forbidden`, `not_found` …: why the nodes cannot be looked at at all
   */
  plan(job: PlanJob): Promise<{ steps: readonly NodeStep[]; stopped: RollResult['stopped'] }>;
  forget(uid: string): void;
};
