import { z } from 'zod';
import { TGT_TYPES, zPillarName, zUserSub } from '../names.ts';
import { zCursor, zPageLimit, zTimeAsked } from './common.ts';
import { secretField } from './secret-fields.ts';

const zPart = z.string().min(1, 'is empty').max(1024, 'is longer than 1024 characters');

/** `POST /pillars/search`: pillars of every kind and scope; what is left out does not matter. */
export const zPillarSearch = z.strictObject({
  tgt_type: z.enum(TGT_TYPES, `must be one of ${TGT_TYPES.join(', ')}`).optional(),
  /** Environments, as in `pillarenv` of a pillar. */
  scopes: z.array(z.string().min(1).max(1024)).min(1, 'is empty').max(100, 'more than 100 scopes').optional(),
  name: zPillarName.optional(),
  name_prefix: zPart.optional(),
  /**
   * A part of the canonical text of a plain value: no blanks, sorted keys, text in double quotes. It may be a secret somebody looks for
   * where none should be.
   */
  value: secretField(zPart).optional(),
  created_by: zUserSub.optional(),
  updated_by: zUserSub.optional(),
  /** Changed last at this time or later, and before that one. */
  since: zTimeAsked.optional(),
  until: zTimeAsked.optional(),
  limit: zPageLimit.optional(),
  cursor: zCursor.optional(),
});
export type PillarSearchBody = z.infer<typeof zPillarSearch>;
