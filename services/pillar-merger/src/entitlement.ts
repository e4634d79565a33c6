import { parseEnv } from '@colonnade/contracts';
import type { MasterRecord, MinionRecord } from '@colonnade/estate-store';
import type { CollectionTree } from './collection-tree.ts';
import { BASE_ENV } from './resolve.ts';

export const PILLARENV_POLICIES = ['entitled', 'trust'] as const;
/** `trust` reads any environment it is asked for, to the letter of seed 000. */
export type PillarenvPolicy = (typeof PILLARENV_POLICIES)[number];

/** Who asks, as the estate knows it. */
export type Asker = {
  master: Pick<MasterRecord, 'envs'>;
  minion: Pick<MinionRecord, 'collections'>;
  tree: CollectionTree;
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

function isEntitled(env: string, { master, tree }: Asker, branches: ReadonlySet<string>): boolean {
  const parsed = parseEnv(env);
  switch (parsed.kind) {
    case 'plain':
      return env === BASE_ENV || master.envs.includes(env);
    case 'collection':
      return (
        branches.has(parsed.collectionId) && isOwner(parsed.userSub, tree.get(parsed.collectionId)?.owner)
      );
    case 'task':
      // A live task that targets the minion will be allowed here, once the estate knows tasks.
      return false;
    case 'minion':
    case 'other':
      // The minion's own scope comes with `base`, and never by its name.
      return false;
  }
}

/** Without a user the environment names records of the old form, which belong to no other tree. */
function isOwner(userSub: string | undefined, owner: string | undefined): boolean {
  return userSub === undefined || userSub === owner;
}
