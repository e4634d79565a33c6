import { z } from 'zod';
import { zUserSub } from '../names.ts';
import { pageOf, zTime } from './common.ts';

const zJti = z.string().min(1, 'jti is empty').max(512, 'jti is too long');

/** `POST /revocations`: all that a user of the issuer's was given up to now, or one token. */
export const zRevocationCreate = z
  .strictObject({ sub: zUserSub.optional(), jti: zJti.optional() })
  .refine(({ sub, jti }) => (sub === undefined) !== (jti === undefined), 'one of sub and jti, not both');

export const zRevocationView = z.strictObject({
  id: z.string(),
  sub: z.string().nullable(),
  jti: z.string().nullable(),
  revoked_at: zTime,
  /** From then on no token it is about is young enough anyway. */
  ends_at: zTime,
});
export const zRevocationPage = pageOf(zRevocationView);
