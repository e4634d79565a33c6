import { z } from 'zod';
import { zPillarenvRequest } from '../merger.ts';
import { zMasterId, zMinionId } from '../names.ts';

/** `GET /explain`; the answer is the merger's. */
export const zExplainQuery = z.strictObject({
  master: zMasterId,
  minion_id: zMinionId,
  pillarenv: zPillarenvRequest.optional(),
  /** `omit`: every value is null, so that a pillar of any size can be explained. */
  values: z.enum(['show', 'omit'], 'must be "show" or "omit"').optional(),
});
