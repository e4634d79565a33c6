import { z } from 'zod';
import { int, zValue } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zExplainedKey, zExplanation, zOrigin, zPillarenvRequest, zSupposedCollections } from '../merger.ts';
import { zMasterId, zMinionId } from '../names.ts';
import { zTimeAsked } from './common.ts';
import { zPast, zTickText } from './history.ts';
import { zPillarCreate } from './pillars.ts';
import { secretField } from './secret-fields.ts';

const zAsked = z.strictObject({
  master: zMasterId,
  minion_id: zMinionId,
  pillarenv: zPillarenvRequest.optional(),
  /** `omit`: every value is null, so that a pillar of any size can be explained. */
  values: z.enum(['show', 'omit'], 'must be "show" or "omit"').optional(),
});

/** `GET /explain` */
export const zExplainQuery = zAsked.extend({
  /** The pillars as they were at a clock or a time; memberships, collections and tasks as they are now. */
  at: z.union([zTickText, zTimeAsked], 'must be a clock or an RFC 3339 time').optional(),
});

const zOriginThen = zOrigin.extend({
  /** With `at`: the clock of the version that stood there. */
  version: int().optional(),
});

/** `GET /explain` and `POST /explain/preview`: what the merger says, and of the past what pillar-api adds. */
export const zExplained = zExplanation.extend({
  /** With `at`: the clock whose pillars these are. What else decided is of `clock`. */
  at: int().optional(),
  keys: z.array(
    zExplainedKey.extend({
      /** With `at`: the value was purged from the history. */
      purged: z.boolean().optional(),
      winner: zOriginThen,
      overrode: z.array(zOriginThen),
    }),
  ),
});

export type Explained = z.infer<typeof zExplained>;

/** A change that is not made: the target as in `POST /pillars`. */
const zPreviewChange = z.strictObject({
  op: z.enum(['set', 'delete'], 'must be "set" or "delete"'),
  ...zPillarCreate.pick({
    tgt_type: true,
    tgt_id: true,
    minion_id: true,
    master: true,
    collection_id: true,
    name: true,
  }).shape,
  /** Of a plain pillar that is set. Without is_secret the pillar that is there decides, so none is ever recorded. */
  value: secretField(zValue.optional()),
  /** Left out: what the pillar is, else false. */
  is_secret: z.boolean('must be true or false').optional(),
});
export type PreviewChange = z.infer<typeof zPreviewChange>;

/** `POST /explain/preview`; the answer is that of `GET /explain`. */
export const zExplainPreview = z.strictObject({
  ...zAsked.shape,
  at: zPast.optional(),
  changes: z
    .array(zPreviewChange)
    .max(LIMITS.previewChanges, `more than ${LIMITS.previewChanges} changes`)
    .optional(),
  collections: zSupposedCollections.optional(),
});
