import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import { canonicalBytes, type Value, type ValueObject } from '@colonnade/value';
import {
  childrenOf,
  DIALECTS,
  type Dialect,
  isObject,
  own,
  pointer,
  SAME_LISTS,
  SAME_MAPS,
  SAME_SINGLES,
} from './keywords.ts';

/** A schema with every place in it that is a schema itself, and where its references lead. */
export type SchemaIndex = {
  dialect: Dialect;
  at(location: string): Value | undefined;
  locations: readonly string[];
  /** Where the `$ref` of the schema at this location leads; undefined: it has none. */
  refOf(location: string): string | undefined;
  /** Whether some `$ref` leads to exactly this place. */
  isTarget(location: string): boolean;
};

const MAX_DEPTH = 32;
const MAX_SCHEMAS = 2000;
/** They change what a reference means, or when a schema applies, in ways a default cannot be placed in. */
const REFUSED = ['$dynamicRef', '$dynamicAnchor', '$recursiveRef', '$recursiveAnchor', '$async', 'id'];
const BESIDE_REF_IN_07 = new Set([
  ...['$ref', '$schema', '$id', '$comment', 'definitions', '$defs', 'title', 'description', 'default'],
  ...['examples', 'readOnly', 'writeOnly'],
]);

/**
 * Walks a schema and checks that it is bounded and closed: its size and depth, references that lead to a schema within
 * it and never, without going down into the instance, back to where they came from. Nothing is ever fetched.
 * Whether its keywords are used as they must be is for its meta-schema to say.
 * @throws ColonnadeError `unprocessable`, with the place of the fault in the schema
 */
export function indexSchema(schema: Value): SchemaIndex {
  const bytes = canonicalBytes(schema).length;
  if (bytes > LIMITS.schemaBytes) throw refuse('', `it has ${bytes} bytes, more than ${LIMITS.schemaBytes}`);
  const dialect = dialectOf(schema);
  const { places, anchors } = walk(schema, dialect);
  const refs = new Map<string, string>();
  for (const [location, place] of places) {
    const ref = isObject(place) ? own(place, '$ref') : undefined;
    if (ref !== undefined) refs.set(location, resolveRef(ref, location, places, anchors));
  }
  const targets = new Set(refs.values());
  const index: SchemaIndex = {
    dialect,
    at: (location) => places.get(location),
    locations: [...places.keys()],
    refOf: (location) => refs.get(location),
    isTarget: (location) => targets.has(location),
  };
  checkNoLoop(index);
  return index;
}

function dialectOf(schema: Value): Dialect {
  const uri = isObject(schema) ? own(schema, '$schema') : undefined;
  if (uri === undefined) return '2020-12';
  const dialect = typeof uri === 'string' ? DIALECTS.get(uri.replace(/#$/u, '')) : undefined;
  if (dialect !== undefined) return dialect;
  throw refuse('/$schema', 'must name JSON Schema draft 2020-12 or draft-07');
}

type Walked = { places: Map<string, Value>; anchors: Map<string, string> };

function walk(root: Value, dialect: Dialect): Walked {
  const walked: Walked = { places: new Map(), anchors: new Map() };
  const visit = (schema: Value, location: string, depth: number): void => {
    if (depth > MAX_DEPTH)
      throw refuse(location, `schemas stand more than ${MAX_DEPTH} levels below each other`);
    if (walked.places.size >= MAX_SCHEMAS) throw refuse('', `more than ${MAX_SCHEMAS} schemas`);
    walked.places.set(location, schema);
    if (typeof schema === 'boolean') return;
    if (!isObject(schema)) throw refuse(location, 'must be an object, true or false');
    checkKeywords(schema, location, dialect, walked.anchors);
    for (const child of childrenOf(schema)) visit(child.schema, pointer(location, ...child.steps), depth + 1);
  };
  visit(root, '', 0);
  return walked;
}

function checkKeywords(
  schema: ValueObject,
  location: string,
  dialect: Dialect,
  anchors: Map<string, string>,
): void {
  const refused = REFUSED.find((keyword) => Object.hasOwn(schema, keyword));
  if (refused !== undefined) throw refuse(pointer(location, refused), 'is not supported in a template');
  for (const keyword of location === '' ? [] : ['$id', '$schema']) {
    if (Object.hasOwn(schema, keyword)) throw refuse(pointer(location, keyword), 'may stand only at the top');
  }
  const beside = Object.keys(schema).find((key) => !BESIDE_REF_IN_07.has(key));
  if (dialect === '07' && Object.hasOwn(schema, '$ref') && beside !== undefined) {
    throw refuse(pointer(location, beside), 'draft-07 ignores what stands beside $ref: put both into allOf');
  }
  const anchor = own(schema, '$anchor');
  if (anchor === undefined) return;
  if (typeof anchor !== 'string' || dialect === '07' || anchors.has(anchor)) {
    throw refuse(pointer(location, '$anchor'), 'must be a text that is there once, in draft 2020-12');
  }
  anchors.set(anchor, location);
}

function resolveRef(
  ref: Value,
  location: string,
  places: ReadonlyMap<string, Value>,
  anchors: ReadonlyMap<string, string>,
): string {
  const fault = (why: string) => refuse(pointer(location, '$ref'), why);
  if (typeof ref !== 'string' || !ref.startsWith('#')) {
    throw fault('must begin with "#": only what stands in the schema itself can be referred to');
  }
  const fragment = decodeFragment(ref.slice(1));
  if (fragment === undefined) throw fault('has a bad percent-encoding');
  const isPointer = fragment === '' || fragment.startsWith('/');
  const target = isPointer ? fragment : anchors.get(fragment);
  if (target === undefined || !places.has(target)) throw fault('leads to no schema');
  return target;
}

function decodeFragment(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Schemas that are applied to the very instance the one at this location is applied to. */
function sameInstance(index: SchemaIndex, location: string): string[] {
  const schema = index.at(location);
  if (!isObject(schema)) return [];
  const ref = index.refOf(location);
  const next = ref === undefined ? [] : [ref];
  for (const { steps } of childrenOf(schema)) {
    const [keyword = ''] = steps;
    if (SAME.has(keyword)) next.push(pointer(location, ...steps));
  }
  return next;
}

const SAME = new Set<string>([...SAME_LISTS, ...SAME_SINGLES, ...SAME_MAPS]);

/** A schema that comes back to itself on the same instance has no end when it is applied. */
function checkNoLoop(index: SchemaIndex): void {
  const done = new Set<string>();
  for (const start of index.locations) {
    const path = new Set<string>();
    const stack: { location: string; next: string[] }[] = [];
    const enter = (location: string): void => {
      if (path.has(location)) throw refuse(location, 'comes back to itself on the same instance');
      if (done.has(location)) return;
      path.add(location);
      stack.push({ location, next: sameInstance(index, location) });
    };
    enter(start);
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const next = top.next.pop();
      if (next !== undefined) {
        enter(next);
        continue;
      }
      stack.pop();
      path.delete(top.location);
      done.add(top.location);
    }
  }
}

/** Characters of a place that are repeated: keys of a schema may be long. */
const SHOWN = 200;

function refuse(location: string, why: string): ColonnadeError {
  const where = location === '' ? 'schema' : `schema at ${location.slice(0, SHOWN)}`;
  return new ColonnadeError('unprocessable', `${where}: ${why}`, { field: 'schema' });
}
