import { readFileSync } from 'node:fs';
import { ColonnadeError, decode, LIMITS, type ScopedRole, zRole, zScopedRole } from '@colonnade/contracts';
import { z } from 'zod';
import type { Role } from './permissions.ts';

/** One line of OIDC_ROLES_FILE: who is in this group has this role, for the whole estate or in a scope. */
const zGroupRole = z
  .strictObject({
    group: z.string().min(1).max(LIMITS.oidcGroupChars),
    role: zRole,
    tgt_types: zScopedRole.shape.tgt_types,
    collections: zScopedRole.shape.collections,
    name_prefixes: zScopedRole.shape.name_prefixes,
  })
  .refine(
    ({ role, ...scope }) => isWhole(scope as Partial<ScopedRole>) || role !== 'admin',
    'an admin has no scope: what only an admin may do has no target',
  );
const zGroupRoles = z.array(zGroupRole).min(1).max(LIMITS.oidcGroupRoles);
export type GroupRole = z.infer<typeof zGroupRole>;

export type Held = { roles: readonly Role[]; scopedRoles: readonly ScopedRole[] };

/** Reads the file. @throws ColonnadeError `misconfigured` naming the fault */
export function readGroupRoles(path: string): readonly GroupRole[] {
  try {
    return decode(zGroupRoles, readFileSync(path));
  } catch (cause) {
    const why = cause instanceof ColonnadeError ? cause.message : 'it cannot be read';
    throw new ColonnadeError('misconfigured', `OIDC_ROLES_FILE: ${path}: ${why}`, { cause });
  }
}

/** The roles that these groups have; a group nobody has written down gives none. */
export function rolesOfGroups(lines: readonly GroupRole[], groups: readonly string[]): Held {
  const held = lines.filter(({ group }) => groups.includes(group));
  return {
    roles: [...new Set(held.filter((line) => isWhole(line as Partial<ScopedRole>)).map(({ role }) => role))],
    scopedRoles: held
      .filter((line) => !isWhole(line as Partial<ScopedRole>))
      .map(({ group: _, ...scope }) => scope as ScopedRole),
  };
}

function isWhole({ tgt_types, collections, name_prefixes }: Partial<ScopedRole>): boolean {
  return tgt_types === undefined && collections === undefined && name_prefixes === undefined;
}

/**
 * The groups a token names, at a path of claims such as `groups` or `realm_access.roles`. One text is one group; what
 * is neither text nor a list of texts is none.
 */
export function groupsOf(claims: unknown, path: string): readonly string[] {
  let at = claims;
  for (const step of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return [];
    at = (at as Record<string, unknown>)[step];
  }
  if (typeof at === 'string') return [at];
  if (!Array.isArray(at)) return [];
  return at.filter((group) => typeof group === 'string');
}
