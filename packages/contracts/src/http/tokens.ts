import { z } from 'zod';
import { int } from '../codec.ts';
import { zUserSub } from '../names.ts';
import { pageOf, zTime } from './common.ts';
import { secretField } from './secret-fields.ts';

export const ROLES = ['viewer', 'editor', 'secret-reader', 'admin'] as const;
export const zRole = z.enum(ROLES, `must be one of ${ROLES.join(', ')}`);

/** `POST /tokens`. Without expires_in_s the token lives until it is deleted. */
export const zTokenCreate = z.strictObject({
  sub: zUserSub,
  roles: z
    .array(zRole)
    .min(1, 'a token needs a role')
    .max(ROLES.length)
    .refine((roles) => new Set(roles).size === roles.length, 'a role is listed twice'),
  expires_in_s: int({ min: 60, max: 10 * 366 * 86400 }).optional(),
});

export const zTokenView = z.strictObject({
  id: z.string(),
  sub: z.string(),
  roles: z.array(zRole),
  created_at: zTime,
  expires_at: zTime.nullable(),
});

/** The token itself: shown once, only its hash is kept. */
export const zTokenCreated = zTokenView.extend({ token: secretField(z.string()) });
export const zTokenPage = pageOf(zTokenView);
