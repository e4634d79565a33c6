import { z } from 'zod';
import { int } from '../codec.ts';
import { KEY_STATES } from '../kms-keys.ts';
import { pageOf, zTime } from './common.ts';

/** One version of a key of the KMS, without the key. */
export const zKeyVersionView = z.strictObject({
  name: z.string(),
  /** What it is for: values of pillars, or identities of workloads. */
  purpose: z.enum(['seal', 'sign']),
  version: int({ min: 1 }),
  /** What `$enc` of a sealed value names it by; a token names the key that was derived from it. */
  kid: z.string(),
  state: z.enum(KEY_STATES),
  /** Or verifies. False below the least version, and when it is destroyed. */
  opens: z.boolean(),
  /** Values stored under it: pillars, all their versions, and what imports have staged. */
  values: int({ min: 0 }),
  /** At most so many encryptions were done with it; 2^32 are the limit. */
  encryptions: int({ min: 0 }),
  created_at: zTime,
  /** From then on it seals, or signs. */
  active_from: zTime,
  destroyed_at: zTime.nullable(),
  /** A destroyed one can be taken back until then. */
  erased_after: zTime.nullable(),
});
export const zKeyVersionPage = pageOf(zKeyVersionView);

/** One version of a key, of which something is asked. */
export const zKeyVersionAsk = z.strictObject({
  version: int({ min: 1, max: 999_999 }),
});

/** How far the stored values of a key are brought under the version that seals. */
export const zRewrapView = z.strictObject({
  name: z.string(),
  state: z.enum(['idle', 'running']),
  /** The version that seals. */
  kid: z.string(),
  /** Values under older versions now. */
  left: int({ min: 0 }),
  /** Of the run under way, or of the last one; null: there was none. */
  run: z
    .strictObject({
      by: z.string(),
      kid: z.string(),
      started_at: zTime,
      updated_at: zTime,
      finished_at: zTime.nullable(),
      rewrapped: int({ min: 0 }),
      /** Values that do not open in their place. */
      failed: int({ min: 0 }),
    })
    .nullable(),
});
