import type { KubeClient } from '../kube/client.ts';
import { isContested, NO_CONTEST, noteFight } from '../rules/contest.ts';
import { planSync, type SyncPlan } from './plan-sync.ts';
import { createTally, type Memory, type SyncJob, type SyncResult, type Tally } from './tally.ts';
import { dataHash } from './target.ts';
import { writeTarget } from './write-target.ts';

export type SyncWatcher = {
  /** Seed 004: logged at v=3, which is `debug` here. */
  targetMissing(facts: { namespace: string; secretName: string }): void;
  targetWritten(facts: { namespace: string; secretName: string; outcome: 'updated' | 'created' }): void;
  targetFailed(facts: { namespace: string; secretName: string; reason: string }): void;
  targetContested(facts: { namespace: string; secretName: string; untilMs: number }): void;
};

export type SecretSync = {
  run(job: SyncJob): Promise<SyncResult>;
  /** What `run` would do, from what is known; writes nothing. */
  plan(job: SyncJob): SyncPlan;
  /** Forgets an IngressTLS that is gone. */
  forget(owner: string): void;
};

/** Brings every target of an IngressTLS to the source's fields, a few at a time. */
export function createSecretSync(client: KubeClient, watcher: SyncWatcher, writers: number): SecretSync {
  const memories = new Map<string, Map<string, Memory>>();
  return {
    forget: (owner) => void memories.delete(owner),
    plan: (job) => planSync(job, memories.get(job.owner)),
    async run(job) {
      const memory = memories.get(job.owner) ?? new Map<string, Memory>();
      memories.set(job.owner, memory);
      const tally = createTally(job);
      const wanted = dataHash(job.data);
      const queue = job.selection.targets.values();
      const work = async () => {
        for (const namespace of queue)
          await syncOne(client, job, { namespace, wanted, memory, tally, watcher });
      };
      const ends = await Promise.allSettled(Array.from({ length: writers }, work));
      for (const end of ends) if (end.status === 'rejected') throw end.reason;
      const targets = new Set(job.selection.targets);
      for (const namespace of memory.keys()) if (!targets.has(namespace)) memory.delete(namespace);
      return tally.result();
    },
  };
}

type One = {
  namespace: string;
  wanted: string;
  memory: Map<string, Memory>;
  tally: Tally;
  watcher: SyncWatcher;
};

async function syncOne(client: KubeClient, job: SyncJob, one: One): Promise<void> {
  const { namespace, wanted, memory, tally, watcher } = one;
  const { secretName } = job;
  if (!job.isOurs(namespace)) return tally.conflict(namespace);
  const seen = job.targets.get(namespace);
  const mine = memory.get(namespace) ?? { contest: NO_CONTEST, written: undefined };
  memory.set(namespace, mine);
  if (seen?.hash === wanted) {
    mine.written = wanted;
    return tally.add(namespace, { outcome: 'unchanged' });
  }
  // A new source is no part of the fight.
  if (mine.written === wanted && isContested(mine.contest, Date.now()))
    return tally.contested(namespace, mine.contest.backOffUntilMs);
  const { createIfMissing, data, owner } = job;
  const result = await writeTarget(client, { namespace, secretName, data, seen, createIfMissing, owner });
  tally.add(namespace, result);
  if (result.outcome === 'missing') watcher.targetMissing({ namespace, secretName });
  if (result.outcome === 'failed') watcher.targetFailed({ namespace, secretName, reason: result.reason });
  if (result.outcome !== 'updated' && result.outcome !== 'created') return;
  job.targets.note(result.secret);
  watcher.targetWritten({ namespace, secretName, outcome: result.outcome });
  // It had our content already, and the source has not changed: somebody else did.
  if (mine.written === wanted) {
    mine.contest = noteFight(mine.contest, Date.now());
    const { backOffUntilMs } = mine.contest;
    if (isContested(mine.contest, Date.now()))
      watcher.targetContested({ namespace, secretName, untilMs: backOffUntilMs });
  }
  mine.written = wanted;
}
