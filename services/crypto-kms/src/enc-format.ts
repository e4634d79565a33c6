import { ColonnadeError, ENC_MARKER } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { Kek } from './envelope.ts';

/** Sizes of AES-256-GCM as seed 000 uses it, in bytes. */
export const KEY_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

/** A sealed value, decoded: every length is right, nothing is verified yet. */
export type SealedParts = {
  kek: Kek;
  nonce: Buffer;
  /** Ciphertext followed by the tag. */
  ciphertext: Buffer;
  wrapNonce: Buffer;
  /** Wrapped DEK followed by the tag: 48 bytes. */
  wrappedDek: Buffer;
};

const FIELDS = [
  'v',
  'alg',
  'kid',
  'nonce_b64',
  'ct_b64',
  'dek_wrap_alg',
  'dek_wrap_nonce_b64',
  'dek_wrapped_b64',
] as const;

/**
 * Reads `{"$enc": {…}}`, version 1 (seed 000): exactly its eight fields, strict base64, exact lengths. v, alg and kid
 * are looked at before the rest, so that a record of another key or version is named as such.
 * @throws ColonnadeError `value_invalid` naming the field, `kid_unknown`; never with any content
 */
export function readSealed(value: Value, find: (kid: string) => Kek | undefined): SealedParts {
  const outer = asObject(value);
  if (outer === undefined || !Object.hasOwn(outer, ENC_MARKER))
    throw malformed(undefined, 'a sealed value is an object with the key "$enc"');
  if (Object.keys(outer).length !== 1)
    throw malformed(undefined, 'a sealed value has no other key beside "$enc"');
  const enc = asObject(outer[ENC_MARKER] as Value);
  if (enc === undefined) throw malformed(ENC_MARKER, '"$enc" is not an object');
  for (const field of FIELDS) if (!Object.hasOwn(enc, field)) throw malformed(field, 'is missing');
  if (Object.keys(enc).length !== FIELDS.length) throw malformed(ENC_MARKER, '"$enc" has an unknown field');

  if (enc.v !== 1n) throw malformed('v', 'must be the integer 1');
  if (enc.alg !== 'A256GCM') throw malformed('alg', 'must be "A256GCM"');
  if (enc.dek_wrap_alg !== 'A256GCM') throw malformed('dek_wrap_alg', 'must be "A256GCM"');
  const { kek, wrapNonce, wrappedDek } = readWrapping(enc, find);
  return {
    ...{ kek, wrapNonce, wrappedDek },
    nonce: readBytes('nonce_b64', enc.nonce_b64 as Value, NONCE_BYTES),
    ciphertext: readBytes('ct_b64', enc.ct_b64 as Value),
  };
}

/** Reads the fields of `$enc` that are about its DEK. @throws ColonnadeError as readSealed */
export function readWrapping(
  enc: { readonly [field: string]: Value },
  find: (kid: string) => Kek | undefined,
): Pick<SealedParts, 'kek' | 'wrapNonce' | 'wrappedDek'> {
  if (typeof enc.kid !== 'string') throw malformed('kid', 'must be a text');
  const kek = find(enc.kid);
  if (kek === undefined)
    throw new ColonnadeError('kid_unknown', 'sealed under a key that is none of ours', { field: 'kid' });
  return {
    kek,
    wrapNonce: readBytes('dek_wrap_nonce_b64', enc.dek_wrap_nonce_b64 as Value, NONCE_BYTES),
    wrappedDek: readBytes('dek_wrapped_b64', enc.dek_wrapped_b64 as Value, KEY_BYTES + TAG_BYTES),
  };
}

/**
 * Standard base64 (RFC 4648, section 4), stricter than Python's `validate=True`: no white space, exact padding, no
 * stray bits behind the last byte, so that one byte string has exactly one text.
 */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

function readBytes(field: string, value: Value, exactly?: number): Buffer {
  if (typeof value !== 'string') throw malformed(field, 'must be a text');
  const bytes = decodeBase64(value);
  if (bytes === undefined) throw malformed(field, 'is not standard base64');
  if (exactly !== undefined && bytes.length !== exactly) throw malformed(field, `must be ${exactly} bytes`);
  // One byte of plaintext at least: no JSON text is empty.
  if (exactly === undefined && bytes.length <= TAG_BYTES)
    throw malformed(field, `must be longer than ${TAG_BYTES} bytes`);
  return bytes;
}

function asObject(value: Value): { [key: string]: Value } | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}

function malformed(field: string | undefined, why: string): ColonnadeError {
  const where = field === undefined || field === ENC_MARKER ? '' : `$enc.${field} `;
  return new ColonnadeError('value_invalid', `${where}${why}`, field === undefined ? {} : { field });
}
