import type { Value } from './value.ts';

/**
 * Whether two values are the same: same kinds, same texts, keys in any order. `1n` and `1` differ, and so do `0`
 * and `-0`, so that two values are equal exactly when their canonical texts are.
 */
export function valuesEqual(a: Value, b: Value): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b);
  if (a === b) return true;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => valuesEqual(item, b[index] as Value));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && valuesEqual(a[key] as Value, b[key] as Value));
}
