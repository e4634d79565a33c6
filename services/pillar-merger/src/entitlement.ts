import { parseEnv } from '@colonnade/contracts';
import { isEndState, type MasterRecord, type MinionRecord, type TaskRecord } from '@colonnade/estate-store';
import type { CollectionTree } from './collection-tree.ts';
import { BASE_ENV } from './resolve.ts';

export const PILLARENV_POLICIES = ['entitled', 'trust'] as const;
/** `trust` reads any environment it is asked for, to the letter of seed 000. */
export type PillarenvPolicy = (typeof PILLARENV_POLICIES)[number];

/** Who asks, as the estate knows it. */
export type Asker = {
  master: Pick<MasterRecord, 'envs'>;
  minion: Pick<MinionRecord, 'master' | 'id' | 'collections'>;
  tree: CollectionTree;
  task(id: string): TaskRecord | undefined;
  /** Milliseconds since the epoch. */
  nowMs: number;
};

/**
 * The first environment that this minion may not have, or undefined when it may have all. A minion
 * chooses its pillarenv itself, so a rooted one asks for anything: what is not known to be meant for it is not given.
 */
export function findForbiddenEnv(
  envs: readonly string[],
  asker: Asker,
  policy: PillarenvPolicy,
): string | undefined {
  if (policy === 'trust') return undefined;
  const branches = new Set(asker.minion.collections.flatMap((id) => asker.tree.branch(id)));
  return envs.find((env) => !isEntitled(env, asker, branches));
}

function isEntitled(env: string, asker: Asker, branches: ReadonlySet<string>): boolean {
  const { master, tree } = asker;
  const parsed = parseEnv(env);
  switch (parsed.kind) {
    case 'plain':
      return env === BASE_ENV || master.envs.includes(env);
    case 'collection':
      return (
        branches.has(parsed.collectionId) && isOwner(parsed.userSub, tree.get(parsed.collectionId)?.owner)
      );
    case 'task':
      return isForMinion(asker.task(parsed.taskId), asker, branches);
    case 'minion':
    case 'other':
      // The minion's own scope comes with `base`, and never by its name.
      return false;
  }
}

/** A task is a minion's as long as it lives, when it names the minion or a collection the minion is in. */
function isForMinion(
  task: TaskRecord | undefined,
  { minion, nowMs }: Asker,
  branches: ReadonlySet<string>,
): boolean {
  if (task === undefined || isEndState(task.state)) return false;
  if (task.expiresAtMs !== undefined && task.expiresAtMs <= nowMs) return false;
  return (
    task.minions.some(({ master, id }) => master === minion.master && id === minion.id) ||
    task.collections.some((id) => branches.has(id))
  );
}

/** Without a user the environment names records of the old form, which belong to no other tree. */
function isOwner(userSub: string | undefined, owner: string | undefined): boolean {
  return userSub === undefined || userSub === owner;
}
