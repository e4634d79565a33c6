import { z } from 'zod';
import { int } from '../codec.ts';
import { KEY_STATES } from '../kms.ts';
import { pageOf, zTime } from './common.ts';

/** One version of a key of the KMS, without the key. */
export const zKeyVersionView = z.strictObject({
  name: z.string(),
  version: int({ min: 1 }),
  /** What `$enc` of a sealed value names it by. */
  kid: z.string(),
  state: z.enum(KEY_STATES),
  created_at: zTime,
  /** From then on it seals. */
  active_from: zTime,
});
export const zKeyVersionPage = pageOf(zKeyVersionView);
