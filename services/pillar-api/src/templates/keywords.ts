import type { Value, ValueObject } from '@colonnade/value';

/** Which dialect of JSON Schema a schema is written in. */
export type Dialect = '2020-12' | '07';

/** `$schema`, with the fragment that draft-07 ends in left out. */
export const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['https://json-schema.org/draft/2020-12/schema', '2020-12'],
  ['http://json-schema.org/draft-07/schema', '07'],
  ['https://json-schema.org/draft-07/schema', '07'],
]);

/** Applied to the same instance as the schema they stand in. */
export const SAME_LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
export const SAME_SINGLES = ['not', 'if', 'then', 'else'] as const;
export const SAME_MAPS = ['dependentSchemas', 'dependencies'] as const;

/** Applied to parts of the instance, or only kept for others. */
const PART_SINGLES = [
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'contains', 'contentSchema'],
  ...['items', 'additionalItems', 'unevaluatedItems'],
];
const PART_LISTS = ['prefixItems', 'items'];
const PART_MAPS = ['properties', 'patternProperties', '$defs', 'definitions'];

const SINGLES = new Set<string>([...SAME_SINGLES, ...PART_SINGLES]);
const LISTS = new Set<string>([...SAME_LISTS, ...PART_LISTS]);
const MAPS = new Set<string>([...SAME_MAPS, ...PART_MAPS]);

export function isObject(value: Value | undefined): value is ValueObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function own(object: ValueObject, key: string): Value | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The objects and booleans below a schema that are schemas too, each with the keyword and the key it stands under. */
export function* childrenOf(schema: ValueObject): Generator<{ steps: readonly string[]; schema: Value }> {
  for (const [keyword, value] of Object.entries(schema)) {
    if (SINGLES.has(keyword) && !Array.isArray(value)) yield { steps: [keyword], schema: value };
    else if (LISTS.has(keyword) && Array.isArray(value)) {
      for (const [at, item] of value.entries()) yield { steps: [keyword, String(at)], schema: item };
    } else if (MAPS.has(keyword) && isObject(value)) {
      for (const [key, item] of Object.entries(value)) {
        // `dependencies` of draft-07 may hold lists of names.
        if (!Array.isArray(item)) yield { steps: [keyword, key], schema: item };
      }
    }
  }
}

/** A location in a schema as a JSON Pointer (RFC 6901); '' is the root. */
export function pointer(base: string, ...steps: readonly string[]): string {
  return steps.reduce((path, step) => `${path}/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`, base);
}

/** As the fragment of a URI. */
export function fragmentOf(location: string): string {
  return `#${location.split('/').map(encodeURIComponent).join('/')}`;
}
