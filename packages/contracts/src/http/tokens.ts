import { z } from 'zod';
import { int } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zCollectionId, zPillarName, zTgtType, zUserSub } from '../names.ts';
import { pageOf, zTime } from './common.ts';
import { secretField } from './secret-fields.ts';

export const ROLES = ['viewer', 'editor', 'secret-reader', 'admin'] as const;
export const zRole = z.enum(ROLES, `must be one of ${ROLES.join(', ')}`);

/** Roles that make sense for a part of the estate; what only an admin may do has no target. */
export const SCOPED_ROLES = [
  'viewer',
  'editor',
  'secret-reader',
] as const satisfies readonly (typeof ROLES)[number][];

function scopeList<S extends z.ZodType>(item: S, what: string) {
  return z
    .array(item)
    .min(1, `${what} is empty: leave it out, or the role holds for nothing`)
    .max(LIMITS.scopeEntries, `${what} has more than ${LIMITS.scopeEntries} entries`)
    .optional();
}

/** What a role with a scope holds for: what all of these say. */
const SCOPE_FIELDS = {
  tgt_types: scopeList(zTgtType, 'tgt_types'),
  collections: scopeList(zCollectionId, 'collections'),
  name_prefixes: scopeList(zPillarName, 'name_prefixes'),
};
/** A scope without its role, as crypto-kms keeps it of who may reveal. */
export const zScope = z.strictObject(SCOPE_FIELDS);
export type Scope = z.infer<typeof zScope>;

/**
 * A role for a part of the estate: for what all the given fields hold. `collections`: pillars of these collections and
 * of all below them. `name_prefixes`: pillars whose names begin with one of these.
 */
export const zScopedRole = z
  .strictObject({
    role: z.enum(SCOPED_ROLES, `must be one of ${SCOPED_ROLES.join(', ')}; an admin has no scope`),
    ...SCOPE_FIELDS,
  })
  .refine(
    ({ tgt_types, collections, name_prefixes }) =>
      tgt_types !== undefined || collections !== undefined || name_prefixes !== undefined,
    'a scope is missing: tgt_types, collections or name_prefixes',
  );
export type ScopedRole = z.infer<typeof zScopedRole>;

/** `POST /tokens`. Without expires_in_s the token lives until it is deleted. */
export const zTokenCreate = z
  .strictObject({
    sub: zUserSub,
    /** For the whole estate. */
    roles: z
      .array(zRole)
      .max(ROLES.length)
      .refine((roles) => new Set(roles).size === roles.length, 'a role is listed twice')
      .optional(),
    scoped_roles: z
      .array(zScopedRole)
      .max(LIMITS.scopedRoles, `more than ${LIMITS.scopedRoles} scoped roles`)
      .optional(),
    expires_in_s: int({ min: 60, max: 10 * 366 * 86400 }).optional(),
  })
  .refine(({ roles = [], scoped_roles = [] }) => roles.length + scoped_roles.length > 0, {
    message: 'a token needs a role',
    path: ['roles'],
  });

export const zTokenView = z.strictObject({
  id: z.string(),
  sub: z.string(),
  /** For the whole estate. */
  roles: z.array(zRole),
  scoped_roles: z.array(zScopedRole),
  created_at: zTime,
  expires_at: zTime.nullable(),
  /** Exact to a minute; null: never. */
  last_used_at: zTime.nullable(),
});

/** The token itself: shown once, only its hash is kept. */
export const zTokenCreated = zTokenView.extend({ token: secretField(z.string()) });
export const zTokenPage = pageOf(zTokenView);
