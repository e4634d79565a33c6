import { ColonnadeError } from '@colonnade/contracts';
import { parseValue, type Value } from '@colonnade/value';
import { Double, Int32, Long } from 'mongodb';
import { packText } from '../rules/batch.ts';
import { kidOf } from '../rules/key-use.ts';

/**
 * A value as a document holds it. `value` is ordinary BSON, so that another program sees ordinary documents and
 * `$enc` field for field (seed 000, storage format). What BSON or its driver would not give back the same stands in
 * `value_json` as canonical text, and `value` is absent, so that nobody takes something else for it. `kid` repeats the key
 * a value is sealed under: no index goes by a name that begins with `$`.
 */
export type StoredValue = ({ value: unknown } | { value_json: string }) & { kid?: string };

/** MongoDB takes 100 levels in a document, whose value stands below its top. */
const MAX_LEVELS = 90;
/** The driver makes an object of its own out of these. */
const REFERENCE_KEYS: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);

/** @throws ColonnadeError `value_invalid` for what is no value */
export function packStoredValue(value: Value): StoredValue {
  const text = packText(value);
  const kid = kidOf(value);
  return {
    ...(isHeldByBson(value, 0) ? { value: toBson(value) } : { value_json: text }),
    ...(kid === undefined ? {} : { kid }),
  };
}

/** What such a value must not leave beside itself of the one before it. */
export function unsetBeside(value: StoredValue): { [field: string]: true } {
  const all = ['value', 'value_json', 'kid'];
  return Object.fromEntries(
    all.filter((field) => !Object.hasOwn(value, field)).map((field) => [field, true]),
  );
}

/** @throws ColonnadeError `internal` for a type that is not of JSON, put there by another program */
export function readStoredValue(document: { value?: unknown; value_json?: unknown }): Value {
  const { value, value_json: text } = document;
  if (typeof text === 'string') return parseValue(text, { maxDepth: 512 });
  return fromBson(value);
}

function isHeldByBson(value: Value, level: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (level >= MAX_LEVELS) return false;
  if (Array.isArray(value)) return value.every((item) => isHeldByBson(item, level + 1));
  return Object.keys(value).every(
    (key) => !key.includes('\0') && !REFERENCE_KEYS.has(key) && isHeldByBson(value[key] as Value, level + 1),
  );
}

/** Objects become Maps: the driver takes neither a prototype nor a `_bsontype` from the keys of a Map. */
function toBson(value: Value): unknown {
  if (typeof value === 'bigint') return integerToBson(value);
  if (typeof value === 'number') return new Double(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(toBson);
  return new Map(Object.keys(value).map((key) => [key, toBson(value[key] as Value)]));
}

/** Drivers of other languages write small integers as int32 too; both kinds are integers when read. */
function integerToBson(value: bigint): Int32 | Long {
  return value === BigInt.asIntN(32, value) ? new Int32(Number(value)) : Long.fromBigInt(value);
}

function fromBson(found: unknown): Value {
  if (found === null || typeof found === 'string' || typeof found === 'boolean') return found;
  if (found instanceof Int32) return BigInt(found.value);
  if (found instanceof Long) return found.toBigInt();
  if (found instanceof Double && Number.isFinite(found.value)) return found.value;
  if (Array.isArray(found)) return found.map(fromBson);
  if (typeof found === 'object' && Object.getPrototypeOf(found) === Object.prototype) {
    const object: Record<string, Value> = Object.create(null);
    for (const key of Object.keys(found)) object[key] = fromBson((found as Record<string, unknown>)[key]);
    return object;
  }
  throw new ColonnadeError('internal', 'a document of the estate holds a type that JSON does not have');
}
