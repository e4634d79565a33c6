import type { Value } from '@colonnade/value';
import { z } from 'zod';
import { int } from './codec.ts';

const base64 = z
  .string()
  .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u, 'not standard base64');

/** The sealed form of a pillar value, version 1, field for field as seed 000 stores it. */
export const zEnc = z.strictObject({
  $enc: z.strictObject({
    v: int({ min: 1, max: 1 }),
    alg: z.literal('A256GCM'),
    kid: z.string().min(1).max(128),
    nonce_b64: base64,
    ct_b64: base64,
    dek_wrap_alg: z.literal('A256GCM'),
    dek_wrap_nonce_b64: base64,
    dek_wrapped_b64: base64,
  }),
});

export type Enc = z.infer<typeof zEnc>;

export const ENC_MARKER = '$enc';

/** True when a value is an object with the key `$enc`, well formed or not. */
export function hasEncMarker(value: Value): boolean {
  return isObject(value) && Object.hasOwn(value, ENC_MARKER);
}

/** True when the key `$enc` stands anywhere below the top level. */
export function hasNestedEncMarker(value: Value): boolean {
  const children = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return children.some((child) => hasEncMarker(child) || hasNestedEncMarker(child));
}

function isObject(value: Value): value is { [key: string]: Value } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
