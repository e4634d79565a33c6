import { z } from 'zod';
import { int } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zCollectionId, zEnvName, zMasterId, zMinionId } from '../names.ts';
import { pageOf, zCursor, zPageLimitText, zTime } from './common.ts';
import { secretField } from './secret-fields.ts';

const zEnvs = z
  .array(zEnvName)
  .max(LIMITS.envsPerMaster, `more than ${LIMITS.envsPerMaster} environments`)
  .refine((envs) => new Set(envs).size === envs.length, 'an environment is listed twice');
const zOnUnknownMinion = z.enum(['register', 'refuse'], 'must be "register" or "refuse"');
/** Seconds a master's token lives; the bounds are those of crypto-kms. */
const zTokenLifetime = int({ min: 60, max: 366 * 86400 });

/** `POST /masters` */
export const zMasterCreate = z.strictObject({
  id: zMasterId,
  envs: zEnvs.optional(),
  on_unknown_minion: zOnUnknownMinion.optional(),
  token_lifetime_s: zTokenLifetime.optional(),
});

/** `PUT /masters/{id}` */
export const zMasterUpdate = z.strictObject({ envs: zEnvs, on_unknown_minion: zOnUnknownMinion });

export const zMasterView = z.strictObject({
  id: z.string(),
  envs: z.array(z.string()),
  on_unknown_minion: zOnUnknownMinion,
  /** jti of the tokens that are valid now. */
  token_ids: z.array(z.string()),
  clock: int(),
  etag: z.string(),
});
export const zMasterPage = pageOf(zMasterView);

/** A master's token: shown once, kept nowhere. */
export const zMasterToken = z.strictObject({
  jti: z.string(),
  token: secretField(z.string()),
  expires_at: zTime,
});

/** What a Salt admin needs to connect this master: shown once. */
export const zMasterCreated = zMasterView.extend({
  token: zMasterToken,
  bridge: z.strictObject({
    redis_user: z.string(),
    redis_password: secretField(z.string()),
    /** For `ACL SETUSER <redis_user> …`, or joined with blanks in an aclfile; the password only as its hash. */
    redis_acl_rules: secretField(z.array(z.string())),
  }),
});

/** `POST /masters/{id}/tokens` */
export const zMasterTokenCreate = z.strictObject({ token_lifetime_s: zTokenLifetime.optional() }).optional();

/** `PUT /masters/{master}/minions/{id}`: direct memberships in their order, a later one wins. */
export const zMinionPut = z.strictObject({
  collections: z
    .array(zCollectionId)
    .max(LIMITS.collectionsPerMinion, `more than ${LIMITS.collectionsPerMinion} collections`)
    .refine((ids) => new Set(ids).size === ids.length, 'a collection is listed twice'),
});

export const zMinionView = z.strictObject({
  master: z.string(),
  id: z.string(),
  /** By name, in their order. */
  collections: z.array(z.string()),
  /** By rule, before those by name; absent: none. */
  rule_collections: z.array(z.string()).optional(),
  registered_by: z.string(),
  clock: int(),
  etag: z.string(),
});
export const zMinionPage = pageOf(zMinionView);

/** `GET /masters/{master}/minions` */
export const zMinionQuery = z.strictObject({
  collection: zCollectionId.optional(),
  limit: zPageLimitText.optional(),
  cursor: zCursor.optional(),
});

/** Path of everything about one minion. */
export const zMinionPath = z.strictObject({ master: zMasterId, id: zMinionId });
