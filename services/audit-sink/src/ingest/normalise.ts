import { ColonnadeError } from '@colonnade/contracts';
import type { Value, ValueObject } from '@colonnade/value';

const INTEGER = /^-?(?:0|[1-9]\d*)$/u;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** A value that was brought into range, and whether anything had to be changed for that. */
export type Normalised = { value: Value; changed: boolean };

/**
 * Parses JSON that our values may not be able to hold; integers stay exact. Of a repeated key the last one counts.
 * @throws ColonnadeError `bad_request` when it is no JSON at all
 */
export function parseLoosely(body: Uint8Array): unknown {
  const keepIntegers: Reviver = (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && INTEGER.test(source) ? BigInt(source) : value;
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'), keepIntegers as never);
  } catch (cause) {
    throw new ColonnadeError('bad_request', 'not valid JSON', { cause });
  }
}

/**
 * Brings what `parseLoosely` gave into the range of our values: lone surrogates become U+FFFD, numbers beyond their kind become text,
 * what is nested too deep becomes a place holder. A body of somebody else's request is in the record to be
 * read, not to be computed with.
 */
export function normalise(parsed: unknown, maxDepth: number): Normalised {
  let changed = false;
  const change = <T>(value: T): T => {
    changed = true;
    return value;
  };
  const text = (value: string) => (value.isWellFormed() ? value : change(value.toWellFormed()));
  const walk = (value: unknown, depth: number): Value => {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'bigint') {
      return value >= INT64_MIN && value <= INT64_MAX ? value : change(value.toString());
    }
    if (typeof value === 'number') return Number.isFinite(value) ? value : change(String(value));
    if (typeof value !== 'object' || value === null) return value as Value;
    if (depth === 0) return change('(nested too deep)');
    if (Array.isArray(value)) return value.map((one) => walk(one, depth - 1));
    const out: ValueObject = Object.create(null);
    for (const [key, one] of Object.entries(value)) out[text(key)] = walk(one, depth - 1);
    return out;
  };
  return { value: walk(parsed, maxDepth), changed };
}
