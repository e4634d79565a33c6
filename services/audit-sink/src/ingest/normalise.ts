import { ColonnadeError } from '@colonnade/contracts';
import type { Value, ValueObject } from '@colonnade/value';

const INTEGER = /^-?(?:0|[1-9]\d*)$/u;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/**
 * JSON that our values cannot hold exactly, brought into their range: of a repeated key the last one counts, lone surrogates become
 * U+FFFD, integers beyond 64 bits become floats, what is nested too deep becomes its place holder. A body of
 * somebody else's request is in the record to be read, not to be computed with.
 * @throws ColonnadeError `bad_request` when it is no JSON at all
 */
export function normaliseJson(body: Uint8Array, maxDepth: number): Value {
  const keepKinds: Reviver = (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? numberOf(source, value) : value;
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(body).toString('utf8'), keepKinds as never);
  } catch (cause) {
    throw new ColonnadeError('bad_request', 'not valid JSON', { cause });
  }
  return normalise(parsed, maxDepth);
}

function numberOf(source: string, value: number): bigint | number {
  if (!INTEGER.test(source)) return Number.isFinite(value) ? value : 0;
  const integer = BigInt(source);
  if (integer >= INT64_MIN && integer <= INT64_MAX) return integer;
  return Number.isFinite(value) ? value : 0;
}

function normalise(value: unknown, depth: number): Value {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value as Value;
  if (depth === 0) return '(nested too deep)';
  if (Array.isArray(value)) return value.map((one) => normalise(one, depth - 1));
  const out: ValueObject = Object.create(null);
  for (const [key, one] of Object.entries(value)) out[key.toWellFormed()] = normalise(one, depth - 1);
  return out;
}
