import { ValueError } from './errors.ts';
import { fitsInt64, type ValueObject } from './value.ts';

/** Returns the text if it is well formed; throws `lone_surrogate` otherwise. */
export function checkText(text: string): string {
  if (!text.isWellFormed()) throw new ValueError('lone_surrogate', 'a text with a lone surrogate');
  return text;
}

/** Returns the integer if it fits signed 64 bits; throws `number_range` otherwise. */
export function checkInteger(integer: bigint): bigint {
  if (!fitsInt64(integer)) throw new ValueError('number_range', 'an integer past 64 bits');
  return integer;
}

/** Returns the float if it is finite; throws `number_range` otherwise. */
export function checkFloat(float: number): number {
  if (!Number.isFinite(float)) throw new ValueError('number_range', 'a number that is not finite');
  return float;
}

/**
 * Returns an object's keys if it is a plain one: no class instance, no symbol keys. Throws `not_a_value` otherwise.
 */
export function checkKeys(object: object): string[] {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== null && prototype !== Object.prototype) {
    throw new ValueError('not_a_value', 'an object that is an instance of a class');
  }
  if (Object.getOwnPropertySymbols(object).length > 0) {
    throw new ValueError('not_a_value', 'an object with a symbol for a key');
  }
  return Object.keys(object as ValueObject);
}

/** The error for what is no value at all. Names its type, never its content. */
export function notAValue(x: unknown): ValueError {
  return new ValueError('not_a_value', `${typeof x} is not a value`);
}

/** Throws `too_deep` if a container at this depth is one too many. A cycle ends here as well. */
export function checkDepth(depth: number, maxDepth: number): void {
  if (depth > maxDepth) throw new ValueError('too_deep', `nested deeper than ${maxDepth}`);
}
