import { canonicalBytes, canonicalText, isValue, parseValue, type Value, ValueError } from '@colonnade/value';
import { z } from 'zod';
import { ColonnadeError } from './errors.ts';
import { LIMITS } from './limits.ts';

/** A pillar value inside a message: opaque to zod, already checked by the parser. */
export const zValue = z.custom<Value>((x) => isValue(x), 'not a value');

/**
 * An integer on the wire (a bigint of the value tree) that the program sees as a number.
 * Bounds are inclusive; a float such as `1.0` is refused.
 */
export function int(bounds: { min?: number; max?: number } = {}) {
  const min = bounds.min ?? Number.MIN_SAFE_INTEGER;
  const max = bounds.max ?? Number.MAX_SAFE_INTEGER;
  return z.codec(z.bigint('must be an integer').min(BigInt(min)).max(BigInt(max)), z.int(), {
    decode: (wire) => Number(wire),
    encode: (program) => BigInt(program),
  });
}

/**
 * Parses bytes strictly and decodes them with a schema.
 * @throws ColonnadeError `bad_request` (or `too_large`) with the place of the fault, never with the content.
 */
export function decode<S extends z.ZodType>(
  schema: S,
  input: string | Uint8Array,
  limits: { maxBytes?: number; maxDepth?: number } = {},
): z.output<S> {
  return decodeTree(schema, parseMessage(input, limits));
}

/** Parses a message strictly into a value tree. @throws ColonnadeError `bad_request` or `too_large`. */
export function parseMessage(
  input: string | Uint8Array,
  limits: { maxBytes?: number; maxDepth?: number } = {},
): Value {
  try {
    return parseValue(input, { maxDepth: LIMITS.messageDepth, ...limits });
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    const code = thrown.code === 'too_large' ? 'too_large' : 'bad_request';
    throw new ColonnadeError(code, `not valid JSON: ${thrown.message}`, { cause: thrown });
  }
}

/** Decodes an already parsed tree. @throws ColonnadeError `bad_request` naming the first faulty field. */
export function decodeTree<S extends z.ZodType>(schema: S, tree: unknown): z.output<S> {
  const result = z.safeDecode(schema, tree as z.input<S>);
  if (result.success) return result.data;
  throw schemaError(result.error);
}

/** The canonical bytes of a message. @throws ColonnadeError `internal` when our own message breaks the schema. */
export function encode<S extends z.ZodType>(schema: S, message: z.output<S>): Uint8Array {
  return canonicalBytes(encodeTree(schema, message));
}

/** As encode, as text. */
export function encodeText<S extends z.ZodType>(schema: S, message: z.output<S>): string {
  return canonicalText(encodeTree(schema, message));
}

/** As encode, as a value tree. */
export function encodeTree<S extends z.ZodType>(schema: S, message: z.output<S>): Value {
  const result = z.safeEncode(schema, message);
  if (!result.success) {
    const { field, message: why } = schemaError(result.error);
    throw new ColonnadeError(
      'internal',
      `a message of ours breaks its schema: ${why}`,
      field === undefined ? {} : { field },
    );
  }
  return dropUndefined(result.data) as Value;
}

/** Optional fields that are undefined are absent on the wire. */
function dropUndefined(x: unknown): unknown {
  if (Array.isArray(x)) return x.map(dropUndefined);
  if (typeof x !== 'object' || x === null) return x;
  const out: Record<string, unknown> = Object.create(null);
  for (const [key, value] of Object.entries(x)) if (value !== undefined) out[key] = dropUndefined(value);
  return out;
}

/** Names every faulty field (the first is `field`); texts come from the schema, so nothing of the input is repeated. */
function schemaError(error: z.ZodError): ColonnadeError {
  const faults = error.issues.slice(0, 10).map((issue) => {
    const path = issue.path.map(String).join('.');
    const text =
      issue.code === 'unrecognized_keys'
        ? `unknown field ${issue.keys.map((k) => JSON.stringify(k.slice(0, 64))).join(', ')}`
        : issue.message;
    return path === '' ? text : `${path}: ${text}`;
  });
  const field = error.issues[0]?.path.map(String).join('.');
  return new ColonnadeError('bad_request', faults.join('; '), field ? { field } : {});
}
