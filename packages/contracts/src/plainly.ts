import type { Value } from '@colonnade/value';

/** An object with so many fields: with each of them looked at, it has no other. */
export function hasKeys(
  value: Value | undefined,
  count: number,
): value is { readonly [key: string]: Value } & { [key: string]: Value } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length === count
  );
}

/** A text of so many UTF-16 units, as zod counts them. */
export function isText(value: Value | undefined, min: number, max: number): boolean {
  return typeof value === 'string' && value.length >= min && value.length <= max;
}
