import { ColonnadeError, collectionEnv, LIMITS, minionEnv, parseEnv } from '@colonnade/contracts';
import type { MinionRecord } from '@colonnade/estate-store';
import type { CollectionTree } from './collection-tree.ts';

/** A pillarenv that stands for what a minion gets when nobody chooses. */
const AUTO_ENV = 'auto';
/** Seed 000: the environment whose presence brings the minion's own pillars in. */
export const BASE_ENV = 'base';

/**
 * The environments of a request, in order: split at commas and nothing else (seed 000), or, for `auto`, `base` and
 * the minion's collections in their order, each under the owner of its tree.
 * @throws ColonnadeError `bad_request` for more environments than LIMITS.envsPerRequest
 */
export function resolveEnvs(
  pillarenv: string,
  minion: MinionRecord,
  tree: CollectionTree,
): readonly string[] {
  if (pillarenv === AUTO_ENV) return [BASE_ENV, ...minion.collections.map((id) => ownEnv(id, tree))];
  const envs = pillarenv.split(',');
  if (envs.length > LIMITS.envsPerRequest) {
    throw new ColonnadeError(
      'bad_request',
      `pillarenv names more than ${LIMITS.envsPerRequest} environments`,
    );
  }
  return envs;
}

function ownEnv(id: string, tree: CollectionTree): string {
  const collection = tree.get(id);
  if (collection === undefined) {
    throw new ColonnadeError('internal', 'a minion is a member of a collection that does not exist');
  }
  return collectionEnv(id, collection.owner);
}

/**
 * The scopes (canonical pillarenvs) to read and apply, in order (seed 000): for a collection its branch, root first;
 * then the environment itself, whatever it is; last the minion's own scope when `base` is among the environments.
 * A scope that stands there twice is read once, at its last place: applying it earlier changes nothing, since the
 * later application overwrites the same names.
 */
export function scopesToRead(
  envs: readonly string[],
  minion: { master: string; id: string },
  tree: Pick<CollectionTree, 'branch'>,
): readonly string[] {
  const scopes = envs.flatMap((env) => [...branchScopes(env, tree), env]);
  if (envs.includes(BASE_ENV)) scopes.push(minionEnv(minion.id, minion.master));
  return keepLast(scopes);
}

function branchScopes(env: string, tree: Pick<CollectionTree, 'branch'>): readonly string[] {
  const parsed = parseEnv(env);
  if (parsed.kind !== 'collection') return [];
  return tree.branch(parsed.collectionId).map((id) => collectionEnv(id, parsed.userSub));
}

function keepLast(scopes: readonly string[]): readonly string[] {
  return [...new Set(scopes.toReversed())].reverse();
}
