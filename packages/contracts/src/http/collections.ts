import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zCollectionId, zUserSub } from '../names.ts';
import { pageOf } from './common.ts';

/** What people call a collection; unlike its id it takes part in nothing. */
export const zCollectionName = z
  .string()
  .min(1, 'collection name is empty')
  .refine((s) => s.isWellFormed(), 'collection name holds a lone surrogate')
  .refine(
    (s) => Buffer.byteLength(s) <= LIMITS.nameBytes,
    `collection name is longer than ${LIMITS.nameBytes} bytes`,
  )
  .refine(
    (s) => !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/u.test(s),
    'collection name holds a control character',
  );

/** `POST /collections`. The owner of a child is its parent's; of a root the caller, unless an admin names another. */
export const zCollectionCreate = z.strictObject({
  id: zCollectionId.optional(),
  name: zCollectionName,
  parent_id: zCollectionId.nullable().optional(),
  owner: zUserSub.optional(),
});
export type CollectionCreate = z.infer<typeof zCollectionCreate>;

/** `PATCH /collections/{id}`: rename, move (`parent_id: null` makes it a root), or both. */
export const zCollectionPatch = z
  .strictObject({ name: zCollectionName.optional(), parent_id: zCollectionId.nullable().optional() })
  .refine(
    (patch) => patch.name !== undefined || patch.parent_id !== undefined,
    'nothing to change: name or parent_id',
  );

export const zCollectionView = z.strictObject({
  id: z.string(),
  name: z.string(),
  parent_id: z.string().nullable(),
  owner: z.string(),
  /** The environment of its pillars (seed 000). */
  pillarenv: z.string(),
  /** What makes minions members of it; absent: only who is named. */
  rule: zValue.optional(),
  clock: int(),
  etag: z.string(),
});

/** `GET /collections/{id}`: with its ancestors, root first, itself left out, and its own pillars. */
export const zCollectionDetail = zCollectionView.extend({
  ancestors: z.array(z.strictObject({ id: z.string(), name: z.string() })),
  /** In the order of their pids, at most LIMITS.pageRows. */
  pillars: z.array(z.strictObject({ pid: z.string(), name: z.string(), is_secret: z.boolean() })),
  /** It has more pillars than are named. */
  pillars_more: z.boolean(),
});

export const zCollectionPage = pageOf(zCollectionView);
