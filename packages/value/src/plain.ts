import { checkDepth, checkFloat, checkInteger, checkKeys, checkText, notAValue } from './kind.ts';
import { DEPTH_CEILING, emptyObject, type Value } from './value.ts';

/**
 * A value from ordinary JavaScript data: numbers that are safe integers become integers, all other finite numbers
 * stay floats. Copies; throws `ValueError` for what has no place in JSON (`undefined` included).
 */
export function fromPlain(x: unknown): Value {
  return convert(x, 0);
}

function convert(x: unknown, depth: number): Value {
  switch (typeof x) {
    case 'string':
      return checkText(x);
    case 'bigint':
      return checkInteger(x);
    case 'number':
      return Number.isSafeInteger(x) ? BigInt(x) : checkFloat(x);
    case 'boolean':
      return x;
    case 'object':
      return x === null ? null : convertContainer(x, depth + 1);
    default:
      throw notAValue(x);
  }
}

function convertContainer(container: object, depth: number): Value {
  checkDepth(depth, DEPTH_CEILING);
  // Array.from visits holes as undefined, which is refused; map would keep them.
  if (Array.isArray(container)) return Array.from(container, (item: unknown) => convert(item, depth));
  const object = emptyObject();
  for (const key of checkKeys(container)) {
    object[checkText(key)] = convert((container as Record<string, unknown>)[key], depth);
  }
  return object;
}

/**
 * Ordinary JavaScript data for people to look at: safe integers become numbers, larger ones their decimal text, and
 * objects ordinary objects. Loses the kinds, so nothing made by it is stored or sent on as a value.
 */
export function toPlain(value: Value): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value.toString();
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(toPlain);
  // fromEntries defines keys rather than assigning them, so `__proto__` stays a key.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toPlain(item)]));
}
