import type { Counts, Failure } from './secrets/tally.ts';

export const CONDITIONS = ['Ready', 'SecretsSynced', 'APIServersRotated', 'Degraded'] as const;
export type ConditionType = (typeof CONDITIONS)[number];
export type Condition = {
  type: ConditionType;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  observedGeneration: number;
  lastTransitionTime: string;
};

export type NodePhase =
  | 'Pending'
  | 'Waiting'
  | 'Writing'
  | 'Stopping'
  | 'Starting'
  | 'Reloading'
  | 'Done'
  | 'RollingBack'
  | 'RolledBack'
  | 'Failed'
  | 'Unreachable';
export type NodeStatus = {
  name: string;
  address: string;
  phase: NodePhase;
  message?: string;
  /** SHA-256 of the file on the node. */
  caHash?: string;
  startedAt?: string;
  finishedAt?: string;
};

export type Status = {
  observedGeneration?: number;
  source?: { fingerprint: string; notAfter: string };
  targets?: Counts;
  failures?: readonly Failure[];
  nodes?: readonly NodeStatus[];
  /** Which source every Secret holds, since when, and when old CAs are dropped. */
  trust?: { fingerprint: string; servedSince: string; dropOldAt?: string };
  /** A rollout that stopped: it begins again when the source, the spec or the annotation `retry` changes. */
  stopped?: { node: string; step: string; output: string; for: string };
  conditions?: readonly Condition[];
};

export type Verdict = { status: Condition['status']; reason: string; message?: string };

/** The conditions after a pass; the time is that of the last change of a condition's status. */
export function nextConditions(
  before: readonly Condition[],
  verdicts: Readonly<Record<ConditionType, Verdict>>,
  generation: number,
  now: string,
): Condition[] {
  return CONDITIONS.map((type) => {
    const { status, reason, message = '' } = verdicts[type];
    const old = before.find((c) => c.type === type);
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : now;
    return {
      type,
      status,
      reason,
      message: message.slice(0, 1024),
      observedGeneration: generation,
      lastTransitionTime,
    };
  });
}

/** Whether two statuses say the same; what is undefined is absent. */
export function sameStatus(a: Status, b: Status): boolean {
  return canonical(a) === canonical(b);
}

function canonical(x: unknown): string {
  return JSON.stringify(x, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([m], [n]) => (m < n ? -1 : 1)));
  });
}

/**
 * A merge patch that makes `before` into `after`: what is gone is null. Arrays are replaced whole.
 */
export function statusPatch(before: Status, after: Status): Record<string, unknown> {
  const gone = Object.keys(before).filter((key) => after[key as keyof Status] === undefined);
  return { ...withoutStale(before, after), ...Object.fromEntries(gone.map((key) => [key, null])) };
}

/** Objects are merged key by key, so a key that went has to be said too. */
function withoutStale(before: object, after: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(after).map(([key, value]: [string, unknown]) => {
      const old = (before as Record<string, unknown>)[key];
      if (!isPlain(value) || !isPlain(old)) return [key, value];
      const nulls = Object.keys(old).filter((k) => value[k] === undefined);
      return [key, { ...value, ...Object.fromEntries(nulls.map((k) => [k, null])) }];
    }),
  );
}

function isPlain(x: unknown): x is Record<string, unknown> {
  return typeof x === 'object' && x !== null && !Array.isArray(x);
}
