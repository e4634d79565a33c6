import { floatText } from './float-text.ts';
import { checkDepth, checkFloat, checkInteger, checkKeys, checkText, notAValue } from './kind.ts';
import { DEPTH_CEILING, type Value, type ValueObject } from './value.ts';

/**
 * The canonical JSON text of a value: byte for byte (in UTF-8) what Python's `json.dumps(sort_keys=True,
 * separators=(",", ":"), ensure_ascii=False)` writes for it. Does not trust the type: throws `ValueError` for
 * anything that is not a value, a cycle included.
 */
export function canonicalText(value: Value): string {
  return write(value, 0);
}

/** {@link canonicalText} in UTF-8. */
export function canonicalBytes(value: Value): Uint8Array {
  return Buffer.from(canonicalText(value), 'utf8');
}

/** The members of an object in their order, each its name and the text of its value: what stands between the braces. */
export function canonicalMembers(object: ValueObject): { name: string; text: string }[] {
  return sortKeys(checkKeys(object)).map((name) => ({ name, text: write(object[name], 1) }));
}

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return quote(value);
    case 'bigint':
      return checkInteger(value).toString();
    case 'number':
      return floatText(checkFloat(value));
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? writeArray(value, depth + 1) : writeObject(value, depth + 1);
    default:
      throw notAValue(value);
  }
}

function writeArray(array: unknown[], depth: number): string {
  checkDepth(depth, DEPTH_CEILING);
  if (array.length === 0) return '[]';
  let text = `[${write(array[0], depth)}`;
  for (let i = 1; i < array.length; i++) text += `,${write(array[i], depth)}`;
  return `${text}]`;
}

function writeObject(object: object, depth: number): string {
  checkDepth(depth, DEPTH_CEILING);
  const keys = sortKeys(checkKeys(object));
  let text = '{';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const member = `${quote(key)}:${write((object as Record<string, unknown>)[key], depth)}`;
    text += i === 0 ? member : `,${member}`;
  }
  return `${text}}`;
}

/** What needs an escape or a closer look. */
const SPECIAL = /["\\\x00-\x1f\ud800-\udfff]/;

// For a single well-formed text, JSON.stringify and Python escape the same characters in the same way.
function quote(text: string): string {
  return SPECIAL.test(text) ? JSON.stringify(checkText(text)) : `"${text}"`;
}

/** Sorts by code point, in place. */
function sortKeys(keys: string[]): string[] {
  if (keys.length < 2) return keys;
  return keys.some(hasSurrogate) ? keys.sort(compareCodePoints) : keys.sort();
}

// The default order is by UTF-16 unit, which differs from code points only where there are surrogates.
function hasSurrogate(key: string): boolean {
  return /[\ud800-\udfff]/.test(key);
}

/** Compares by code point: surrogates stand for what lies above U+FFFF, so they sort after every other unit. */
function compareCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right)
      return isSurrogate(left) === isSurrogate(right) ? left - right : isSurrogate(left) ? 1 : -1;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
