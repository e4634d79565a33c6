import { canonicalBytes, canonicalText, isValue, parseValue, type Value, ValueError } from '@colonnade/value';
import { z } from 'zod';
import { ColonnadeError } from './errors.ts';
import { LIMITS } from './limits.ts';

/** A pillar value inside a message: opaque to zod, already checked by the parser. */
export const zValue = z.custom<Value>((x) => isValue(x), 'not a value');

/**
 * An integer on the wire (a bigint of the value tree) that the program sees as a number.
 * Bounds are inclusive and named when a number is outside of them; a float such as `1.0` is refused.
 */
export function int(bounds: { min?: number; max?: number } = {}) {
  const min = bounds.min ?? Number.MIN_SAFE_INTEGER;
  const max = bounds.max ?? Number.MAX_SAFE_INTEGER;
  const range = `must be from ${min} to ${max}`;
  return z.codec(z.bigint('must be an integer').min(BigInt(min), range).max(BigInt(max), range), z.int(), {
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
  const result = z.safeDecode(schema, tree as z.input<S>, { error: faultText });
  if (result.success) return result.data;
  throw schemaError(result.error, tree);
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
  const result = z.safeEncode(schema, message, { error: faultText });
  if (!result.success) {
    const { field, message: why } = schemaError(result.error, message);
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

/** Characters of an unknown field's name that are repeated. */
const SHOWN_KEY = 64;
/** Faults named in one error. */
const SHOWN_FAULTS = 10;

/**
 * Names every faulty field (the first is `field`); texts come from the schema or from faultText, so nothing of the
 * input but the names of unknown fields is repeated.
 */
function schemaError(error: z.ZodError, tree: unknown): ColonnadeError {
  const faults = error.issues.slice(0, SHOWN_FAULTS).map((issue) => {
    const path = issue.path.map(String).join('.');
    const text = isAbsent(tree, issue.path) ? 'is missing' : issue.message;
    return path === '' ? text : `${path}: ${text}`;
  });
  const field = fieldOf(error.issues[0]);
  return new ColonnadeError('bad_request', faults.join('; '), field ? { field } : {});
}

function fieldOf(issue: z.core.$ZodIssue | undefined): string | undefined {
  if (issue === undefined) return undefined;
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  return [...issue.path.map(String), ...unknown.map((key) => key.slice(0, SHOWN_KEY))].join('.');
}

/** True for a field that was not sent at all, whatever the schema has to say of its kind. */
function isAbsent(tree: unknown, path: readonly PropertyKey[]): boolean {
  let at = tree;
  for (const key of path) {
    if (typeof at !== 'object' || at === null) return false;
    if (!Object.hasOwn(at, key)) return true;
    at = (at as Record<PropertyKey, unknown>)[key];
  }
  return path.length > 0 && at === undefined;
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  number: 'a number',
  int: 'an integer',
};

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' items' };

/** What is told of a fault where the schema has no words of its own. */
function faultText(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'unrecognized_keys':
      return `unknown field ${issue.keys.map((key) => JSON.stringify(key.slice(0, SHOWN_KEY))).join(', ')}`;
    case 'invalid_type':
      return `must be ${KINDS[issue.expected] ?? `of the kind ${issue.expected}`}`;
    case 'invalid_value':
      return `must be ${issue.values.map((value) => (typeof value === 'string' ? `"${value}"` : String(value))).join(' or ')}`;
    case 'too_small':
      return `must be at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
    case 'invalid_format':
      return 'is not written as it must be';
    default:
      return 'is not what it must be';
  }
}
