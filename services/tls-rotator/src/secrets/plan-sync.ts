import { isContested } from '../rules/contest.ts';
import { type Counts, createTally, type Failure, type Memory, type SyncJob } from './tally.ts';
import { dataHash } from './target.ts';

export type SyncPlan = {
  /** In the order in which they would be begun. */
  changes: readonly { namespace: string; does: 'update' | 'create' }[];
  counts: Counts;
  failures: readonly Failure[];
};

/** @param memory of earlier passes of this process; another replica has its own */
export function planSync(job: SyncJob, memory: ReadonlyMap<string, Memory> | undefined): SyncPlan {
  const wanted = dataHash(job.data);
  const tally = createTally(job);
  const changes: { namespace: string; does: 'update' | 'create' }[] = [];
  const change = (namespace: string, does: 'update' | 'create') => {
    changes.push({ namespace, does });
    tally.count(does === 'update' ? 'updated' : 'created');
  };
  for (const namespace of job.selection.targets) {
    const seen = job.targets.get(namespace);
    const mine = memory?.get(namespace);
    if (!job.isOurs(namespace)) tally.conflict(namespace);
    else if (seen?.hash === wanted) tally.count('unchanged');
    else if (mine?.written === wanted && isContested(mine.contest, Date.now()))
      tally.contested(namespace, mine.contest.backOffUntilMs);
    else if (seen?.immutable) tally.add(namespace, { outcome: 'failed', reason: 'the Secret is immutable' });
    else if (seen !== undefined) change(namespace, 'update');
    else if (job.createIfMissing) change(namespace, 'create');
    else tally.count('missing');
  }
  const { counts, failures } = tally.result();
  return { changes, counts, failures };
}
