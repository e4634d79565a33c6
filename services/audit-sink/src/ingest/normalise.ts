import { ColonnadeError } from '@colonnade/contracts';
import type { Value, ValueObject } from '@colonnade/value';

const INTEGER = /^-?(?:0|[1-9]\d*)$/u;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/**
 * Parses JSON that our values may not be able to hold; integers stay exact. Of a repeated key the last one counts.
 * @throws ColonnadeError `bad_request` when it is no JSON at all
 */
export function parseLoosely(text: string): unknown {
  const keepIntegers: Reviver = (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && INTEGER.test(source) ? BigInt(source) : value;
  try {
    return JSON.parse(text, keepIntegers as never);
  } catch (cause) {
    throw new ColonnadeError('bad_request', 'not valid JSON', { cause });
  }
}

/**
 * Brings what `parseLoosely` gave into the range of our values: lone surrogates become U+FFFD, numbers beyond their kind become text,
 * what is nested too deep becomes a place holder. A body of somebody else's request is in the record to be
 * read, not to be computed with.
 */
export function normalise(parsed: unknown, maxDepth: number): Value {
  if (typeof parsed === 'string') return parsed.toWellFormed();
  if (typeof parsed === 'bigint') {
    return parsed >= INT64_MIN && parsed <= INT64_MAX ? parsed : parsed.toString();
  }
  if (typeof parsed === 'number') return Number.isFinite(parsed) ? parsed : String(parsed);
  if (typeof parsed !== 'object' || parsed === null) return parsed as Value;
  if (maxDepth === 0) return '(nested too deep)';
  if (Array.isArray(parsed)) return parsed.map((one) => normalise(one, maxDepth - 1));
  const out: ValueObject = Object.create(null);
  for (const [key, one] of Object.entries(parsed)) out[key.toWellFormed()] = normalise(one, maxDepth - 1);
  return out;
}
