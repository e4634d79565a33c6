import { z } from 'zod';
import { zValue } from '../codec.ts';
import { LIMITS } from '../limits.ts';
import { zPillarenvRequest, zSupposedCollections } from '../merger.ts';
import { zMasterId, zMinionId } from '../names.ts';
import { zPillarCreate } from './pillars.ts';
import { secretField } from './secret-fields.ts';

/** `GET /explain`; the answer is the merger's. */
export const zExplainQuery = z.strictObject({
  master: zMasterId,
  minion_id: zMinionId,
  pillarenv: zPillarenvRequest.optional(),
  /** `omit`: every value is null, so that a pillar of any size can be explained. */
  values: z.enum(['show', 'omit'], 'must be "show" or "omit"').optional(),
});

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
  ...zExplainQuery.shape,
  changes: z
    .array(zPreviewChange)
    .max(LIMITS.previewChanges, `more than ${LIMITS.previewChanges} changes`)
    .optional(),
  collections: zSupposedCollections.optional(),
});
