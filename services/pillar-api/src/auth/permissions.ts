import { ColonnadeError, type ROLES } from '@colonnade/contracts';

export type Role = (typeof ROLES)[number];

export const PERMISSIONS = [
  'self:read',
  'estate:read',
  'metrics:read',
  'pillar:write',
  'pillar:salt-control',
  'pillar:purge-history',
  'secret:reveal',
  'collection:write',
  'collection:assign-owner',
  'minion:write',
  'master:write',
  'service:write',
  'token:write',
  'key:write',
  'hook:run',
] as const;
/** What only workloads may, by their own identity; no role has any of these. */
export const WORKLOAD_PERMISSIONS = [
  'identity:self',
  'identity:pillars',
  'identity:minions',
  'identity:enrol',
  'event:publish',
] as const;

export type Permission = (typeof PERMISSIONS)[number] | (typeof WORKLOAD_PERMISSIONS)[number];

const READ = ['self:read', 'estate:read', 'metrics:read'] as const satisfies readonly Permission[];

/** What each role may do; what is not listed is denied. Roles of one token add up. */
export const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  viewer: READ,
  editor: [...READ, 'pillar:write', 'collection:write', 'minion:write'],
  'secret-reader': [...READ, 'secret:reveal'],
  admin: PERMISSIONS,
};

export function permissionsOf(roles: readonly Role[]): ReadonlySet<Permission> {
  return new Set(roles.flatMap((role) => ROLE_PERMISSIONS[role]));
}

/** The names of the roles that have a permission, for a message. */
export function rolesWith(wanted: Permission): string {
  const roles = Object.entries(ROLE_PERMISSIONS).filter(([, all]) => all.includes(wanted));
  return roles.map(([role]) => role).join(', ');
}

/** @throws ColonnadeError `forbidden` naming the permission and the roles that have it */
export function requirePermission(held: ReadonlySet<Permission>, wanted: Permission): void {
  if (held.has(wanted)) return;
  const who = rolesWith(wanted);
  const how = who === '' ? 'no role has it; an identity of a workload may' : `roles: ${who}`;
  throw new ColonnadeError('forbidden', `this needs the permission ${wanted} (${how})`);
}
