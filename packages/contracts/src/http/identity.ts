import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { zMinionId, zTgtType } from '../names.ts';
import { ENROLMENT_LIFETIME_MAX_S, WORKLOAD_ALGORITHMS, zAudience, zWorkload } from '../workload.ts';
import { pageOf, zTime } from './common.ts';
import { secretField, secretIfMarked } from './secret-fields.ts';

/** A token of a workload: shown once, kept nowhere. */
export const zIdentityToken = z.strictObject({
  token: secretField(z.string()),
  jti: z.string(),
  expires_at: zTime,
});

/** `GET /identity`: whose the token is. */
export const zIdentityView = z.strictObject({
  sub: z.string(),
  workload: zWorkload,
  /** The enrolment it came of; null for a task's. */
  sid: z.string().nullable(),
  jti: z.string(),
  expires_at: zTime,
});

/** `POST /identity/renew`. With an audience, a token for somebody else; with a minion, a master's for one of its own. */
export const zIdentityRenew = z
  .strictObject({
    audience: zAudience.optional(),
    algorithm: z.enum(WORKLOAD_ALGORITHMS, `must be one of ${WORKLOAD_ALGORITHMS.join(', ')}`).optional(),
    minion: zMinionId.optional(),
  })
  .optional();

/** `POST /identity/enrol`: the first token of a host that came with a one-time token. */
export const zIdentityEnrolled = zIdentityToken.extend({ workload: zWorkload });

/** One pillar as a workload gets it: opened. */
const zOwnPillar = z.strictObject({
  name: z.string(),
  tgt_type: zTgtType,
  value: secretField(zValue, secretIfMarked),
  is_secret: z.boolean(),
});

/** `GET /identity/pillars`: of a task its template's, then its own; all of one moment. */
export const zOwnPillars = z.strictObject({ items: z.array(zOwnPillar), clock: int() });

/** `GET /identity/minions` */
export const zOwnMinionPage = pageOf(z.strictObject({ id: z.string(), collections: z.array(z.string()) }));

/** `POST /masters/{id}/enrolments` */
export const zEnrolmentCreate = z
  .strictObject({ expires_in_s: int({ min: 60, max: ENROLMENT_LIFETIME_MAX_S }).optional() })
  .optional();

/** A one-time token: shown once. `id` is what is deleted among the master's tokens when the host is lost. */
export const zEnrolment = z.strictObject({
  id: z.string(),
  token: secretField(z.string()),
  expires_at: zTime,
});
