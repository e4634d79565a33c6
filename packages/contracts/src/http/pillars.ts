import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { TGT_TYPES, zCollectionId, zMasterId, zMinionId, zPillarName, zTgtType, zUserSub } from '../names.ts';
import { pageOf, zCursor, zPageLimit, zTime } from './common.ts';
import { secretField, secretIfMarked, secretIfRefused } from './secret-fields.ts';

/**
 * `POST /pillars`. `tgt_id` may be sent as the id of the target; `pillarenv` may be sent and is always overwritten
 * (seed 000, _resolve_target).
 */
export const zPillarCreate = z.strictObject({
  tgt_type: z.enum(TGT_TYPES, 'must be "root", "collection", "minion", "task" or "task_tpl"'),
  name: zPillarName,
  value: secretField(zValue, secretIfRefused),
  is_secret: z.boolean('must be true or false').optional(),
  created_by: zUserSub.optional(),
  /** With tgt_type minion. */
  minion_id: zMinionId.optional(),
  master: zMasterId.optional(),
  /** With tgt_type collection. */
  collection_id: zCollectionId.optional(),
  tgt_id: z.string().min(1, 'tgt_id is empty').max(512, 'tgt_id is too long').optional(),
  pillarenv: z.string().max(4096, 'pillarenv is too long').optional(),
});
export type PillarCreate = z.infer<typeof zPillarCreate>;

/** `PUT /pillars/{pid}` */
export const zPillarUpdate = z.strictObject({ value: secretField(zValue, secretIfRefused) });

/** `POST /pillars/list`: root and minion pillars only (seed 000). */
export const zPillarList = z.strictObject({
  tgt_type: z
    .enum(
      ['minion', 'root'],
      'must be "minion" or "root"; GET /collections/{id} names the pillars of a collection',
    )
    .optional(),
  name: zPillarName.optional(),
  minion_id: zMinionId.optional(),
  master: zMasterId.optional(),
  limit: zPageLimit.optional(),
  cursor: zCursor.optional(),
});
export type PillarList = z.infer<typeof zPillarList>;

/** A pillar as shown; a secret's value is SECRET_MASK. */
export const zPillarView = z.strictObject({
  pid: z.string(),
  tgt_type: zTgtType,
  tgt_id: z.string(),
  pillarenv: z.string(),
  name: z.string(),
  value: secretField(zValue, secretIfMarked),
  is_secret: z.boolean(),
  created_by: z.string(),
  updated_by: z.string(),
  created_at: zTime,
  updated_at: zTime,
  /** Tick of its last change. */
  clock: int(),
  /** As in the ETag header. */
  etag: z.string(),
});
export type PillarView = z.infer<typeof zPillarView>;

/** `POST /pillars/{pid}/unseal`: what was a secret until now. */
export const zPillarUnsealed = zPillarView.extend({ value: secretField(zValue) });

export const zPillarPage = pageOf(zPillarView);

/** `GET /pillars/{pid}/versions`: oldest first; secrets masked. */
export const zPillarVersion = z.strictObject({
  op: z.enum(['create', 'update', 'delete', 'move', 'restore']),
  tgt_type: zTgtType,
  tgt_id: z.string(),
  pillarenv: z.string(),
  name: z.string(),
  value: secretField(zValue, secretIfMarked),
  is_secret: z.boolean(),
  /** Its value is gone for good, and shown as null. */
  purged: z.boolean(),
  by: z.string(),
  at: zTime,
  clock: int(),
});
export const zPillarVersions = pageOf(zPillarVersion);

/** `GET /pillars/{pid}/reach`: minions, in the order of master and id. */
export const zReachPage = pageOf(
  z.strictObject({
    master: z.string(),
    minion_id: z.string(),
    /** The collection the minion is a member of and has the pillar through; null: it has it of itself. */
    collection: z.string().nullable(),
  }),
);

/** `POST /pillars/{pid}/reveal` */
export const zPillarReveal = z.strictObject({
  pid: z.string(),
  name: z.string(),
  value: secretField(zValue),
  clock: int(),
});
