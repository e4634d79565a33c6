import { ValueError } from './errors.ts';
import { checkDepth, checkFloat, checkInteger, checkKeys, checkText, notAValue } from './kind.ts';
import { depthLimit, type Limits, type Value } from './value.ts';

/** Throws `ValueError` if something is not a value that can be written, sent and read back the same. */
export function checkValue(x: unknown, limits?: Limits): asserts x is Value {
  check(x, 0, depthLimit(limits));
}

/** Whether {@link checkValue} accepts it. */
export function isValue(x: unknown, limits?: Limits): x is Value {
  try {
    checkValue(x, limits);
    return true;
  } catch (error) {
    if (error instanceof ValueError) return false;
    throw error;
  }
}

function check(x: unknown, depth: number, maxDepth: number): void {
  switch (typeof x) {
    case 'string':
      checkText(x);
      return;
    case 'bigint':
      checkInteger(x);
      return;
    case 'number':
      checkFloat(x);
      return;
    case 'boolean':
      return;
    case 'object':
      if (x !== null) checkContainer(x, depth + 1, maxDepth);
      return;
    default:
      throw notAValue(x);
  }
}

function checkContainer(container: object, depth: number, maxDepth: number): void {
  checkDepth(depth, maxDepth);
  if (Array.isArray(container)) {
    // Not forEach, which steps over holes: a hole reads as undefined and is refused.
    for (const item of container) check(item, depth, maxDepth);
    return;
  }
  for (const key of checkKeys(container)) {
    checkText(key);
    check((container as Record<string, unknown>)[key], depth, maxDepth);
  }
}
