/**
 * A JSON value with its kinds kept apart: `bigint` is a JSON integer (signed 64 bits), `number` is a JSON
 * float (finite, so `1` is the text `1.0`). Objects made by this package have no prototype, which makes
 * `__proto__` an ordinary key.
 */
export type Value = null | boolean | bigint | number | string | Value[] | ValueObject;

/** An object of {@link Value}s. */
export type ValueObject = { [key: string]: Value };

/** What a reader or a check allows. */
export interface Limits {
  /** Nested arrays and objects; 64 unless said, never above {@link DEPTH_CEILING}. A scalar has depth 0, `[]` has 1. */
  readonly maxDepth?: number;
  /** Bytes of the text in UTF-8; no limit unless said. A check of a value in memory does not look at it. */
  readonly maxBytes?: number;
}

const DEFAULT_DEPTH = 64;

/**
 * The depth no limit goes beyond, and the one `canonicalText` stops at. It is far above the default so that a value
 * at its own limit still fits into the envelope that carries it, and far below what the stack can bear.
 */
export const DEPTH_CEILING = 512;

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/** Whether an integer fits signed 64 bits. */
export function fitsInt64(integer: bigint): boolean {
  return integer >= INT64_MIN && integer <= INT64_MAX;
}

/** The depth that applies: the caller's, or the default, never above the ceiling. */
export function depthLimit(limits: Limits | undefined): number {
  return Math.min(limits?.maxDepth ?? DEFAULT_DEPTH, DEPTH_CEILING);
}

/**
 * An object without a prototype. Not `Object.create(null)`: V8 makes that one a hash table from the start, which is
 * larger, and about ten times slower to list the keys of.
 */
export function emptyObject(): ValueObject {
  return Object.setPrototypeOf({}, null) as ValueObject;
}
