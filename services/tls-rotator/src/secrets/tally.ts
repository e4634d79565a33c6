import type { Secret } from '../kube/objects.ts';
import type { Contest } from '../rules/contest.ts';
import type { Selection } from '../rules/namespaces.ts';
import type { TargetData, TargetView } from './target.ts';
import type { WriteResult } from './write-target.ts';

export const COUNTED = [
  'updated',
  'unchanged',
  'created',
  'missing',
  'failed',
  'contested',
  'conflict',
] as const;
export type Counts = Record<(typeof COUNTED)[number], number>;
export type Failure = { namespace: string; reason: string };
export type SyncResult = {
  counts: Counts;
  /** The first few. */
  failures: readonly Failure[];
  /** When a contested target may be tried again, milliseconds since 1970. */
  retryAtMs: number | undefined;
  written: readonly { namespace: string; outcome: 'updated' | 'created' }[];
};

export type SyncJob = {
  /** UID of the IngressTLS. */
  owner: string;
  secretName: string;
  createIfMissing: boolean;
  data: TargetData;
  selection: Selection;
  /** Whose the target is: another's are left alone. */
  isOurs: (namespace: string) => boolean;
  targets: { get(namespace: string): TargetView | undefined; note(secret: Secret): void };
};

const SHOWN_FAILURES = 20;

/** What is remembered between two passes of one IngressTLS. */
export type Memory = { contest: Contest; written: string | undefined };

export type Tally = ReturnType<typeof createTally>;

export function createTally({ selection }: SyncJob) {
  const counts = Object.fromEntries(COUNTED.map((name) => [name, 0])) as Counts;
  const failures: Failure[] = [];
  const written: { namespace: string; outcome: 'updated' | 'created' }[] = [];
  let retryAtMs: number | undefined;
  // A namespace that is named and not there has no Secret either.
  counts.missing += selection.absent.length;
  const fail = (namespace: string, reason: string) => {
    if (failures.length < SHOWN_FAILURES) failures.push({ namespace, reason });
  };
  return {
    add(namespace: string, result: WriteResult) {
      counts[result.outcome] += 1;
      if (result.outcome === 'failed') fail(namespace, result.reason);
      if (result.outcome === 'updated' || result.outcome === 'created')
        written.push({ namespace, outcome: result.outcome });
    },
    count(outcome: keyof Counts) {
      counts[outcome] += 1;
    },
    contested(namespace: string, untilMs: number) {
      counts.contested += 1;
      retryAtMs = Math.min(retryAtMs ?? untilMs, untilMs);
      fail(namespace, 'contested: somebody else keeps changing it');
    },
    conflict(namespace: string) {
      counts.conflict += 1;
      fail(namespace, 'another IngressTLS, made earlier, has this Secret');
    },
    result: (): SyncResult => ({ counts, failures, retryAtMs, written }),
  };
}
