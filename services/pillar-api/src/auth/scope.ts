import { ColonnadeError, type ScopedRole, type TgtType } from '@colonnade/contracts';
import type { EstateStore } from '@colonnade/estate-store';
import { type Permission, permissionsOf, rolesWith } from './permissions.ts';

/**
 * Roles for a part of the estate. Deny by default: a scope holds what all of its fields hold, and what has no target
 * (masters, tokens, a whole minion's pillar) is in none.
 */

/** What may be in a scope. A pillar has a name; a collection, a minion or a template itself has none. */
export type Target = { tgtType: TgtType; tgtId: string; name?: string };

/** What a request may do, and whether anybody has asked; see `defineRoute`. */
export type Access = {
  /** For the whole estate. */
  whole: ReadonlySet<Permission>;
  scoped: readonly ScopedRole[];
  /** Scope checks made in this request. */
  checks: { count: number };
  /** The tree of collections. */
  tree: Tree;
};

type Tree = Pick<EstateStore, 'getBranch' | 'listCollections'>;

/**
 * Asks whether the caller may do this to that. Every route with `scope: 'target'` calls it for whatever it shows or
 * changes; of lists `selectOn` keeps what may be seen.
 * @throws ColonnadeError `forbidden`
 */
export async function requireOn(
  { access }: { access: Access },
  permission: Permission,
  target: Target,
): Promise<void> {
  access.checks.count += 1;
  if (access.whole.has(permission)) return;
  const roles = scopedRolesWith(access, permission);
  if (roles.length > 0) {
    const branch = needsBranch(roles, target) ? await access.tree.getBranch(target.tgtId) : [];
    if (roles.some((role) => isInScope(role, permission, target, idsOf(target, branch)))) return;
  }
  const why = `this needs the permission ${permission} here (roles: ${rolesWith(permission)}); the caller's roles are for other targets, collections or names`;
  throw new ColonnadeError('forbidden', why);
}

/** For lists: says of each target whether the caller may do this to it, by the tree of collections as it is now. */
export async function selectOn(
  { access }: { access: Access },
  permission: Permission,
): Promise<(target: Target) => boolean> {
  access.checks.count += 1;
  if (access.whole.has(permission)) return () => true;
  const roles = scopedRolesWith(access, permission);
  if (roles.length === 0) return () => false;
  const branchOf = roles.some(({ collections }) => collections !== undefined)
    ? await readTree(access.tree)
    : () => [];
  return (target) => {
    const branch = target.tgtType === 'collection' ? branchOf(target.tgtId) : [];
    return roles.some((role) => isInScope(role, permission, target, branch));
  };
}

/**
 * The pure rule. `branch`: the ids of the collection and of all above it, when the target is of a collection. Prefixes
 * of names let nobody write what has no name; to read it, they do not count: it holds no value.
 */
export function isInScope(
  scope: ScopedRole,
  permission: Permission,
  target: Target,
  branch: readonly string[],
): boolean {
  const { tgt_types, collections, name_prefixes } = scope;
  if (tgt_types !== undefined && !tgt_types.includes(target.tgtType)) return false;
  if (collections !== undefined && !branch.some((id) => collections.includes(id))) return false;
  if (name_prefixes === undefined) return true;
  const { name } = target;
  if (name === undefined) return permission === 'estate:read';
  return name_prefixes.some((prefix) => name.startsWith(prefix));
}

function scopedRolesWith({ scoped }: Access, permission: Permission): readonly ScopedRole[] {
  return scoped.filter(({ role }) => permissionsOf([role]).has(permission));
}

function needsBranch(roles: readonly ScopedRole[], { tgtType }: Target): boolean {
  return tgtType === 'collection' && roles.some(({ collections }) => collections !== undefined);
}

/** A collection that is not there yet is in the scope that names it. */
function idsOf({ tgtType, tgtId }: Target, branch: readonly { id: string }[]): readonly string[] {
  if (tgtType !== 'collection') return [];
  return branch.length === 0 ? [tgtId] : branch.map(({ id }) => id);
}

async function readTree(store: Tree): Promise<(id: string) => readonly string[]> {
  const parents = new Map((await store.listCollections()).map(({ id, parentId }) => [id, parentId]));
  return (id) => {
    const branch: string[] = [];
    for (let at: string | undefined = id; at !== undefined && branch.length <= parents.size; ) {
      branch.push(at);
      at = parents.get(at);
    }
    return branch;
  };
}
