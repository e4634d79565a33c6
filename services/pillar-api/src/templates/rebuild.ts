import type { Value, ValueObject } from '@colonnade/value';
import { childrenOf, fragmentOf, isObject, pointer } from './keywords.ts';
import type { Beside, Edits } from './placing.ts';
import type { SchemaIndex } from './schema-index.ts';

/** What stays at the top when a schema that is referred to is wrapped into a new one. */
const TOP = new Set(['$schema', '$id', '$comment', '$defs', 'definitions', 'title', 'description']);

/**
 * The schema with these edits: a new one, in which every reference leads to what it led to before. It accepts exactly
 * what it accepted before, since nothing but defaults, and copies of what applies anyway, was added.
 */
export function rebuild(index: SchemaIndex, edits: Edits): Value {
  const moved = new Map<string, string>();
  findMoves(index, edits, '', '', moved);
  return build({ index, moved }, '', edits, false);
}

/** Files where each schema stands afterwards, when it does not stand where it stood. */
function findMoves(
  index: SchemaIndex,
  edits: Edits,
  from: string,
  to: string,
  moved: Map<string, string>,
): void {
  const schema = index.at(from);
  const isWrapped = edits.beside.has(from) && index.isTarget(from);
  const inner = isWrapped ? `${to}/allOf/0` : to;
  if (inner !== from) moved.set(from, inner);
  if (!isObject(schema)) return;
  for (const { steps } of childrenOf(schema)) {
    const [keyword = ''] = steps;
    const base = isWrapped && from === '' && TOP.has(keyword) ? to : inner;
    findMoves(index, edits, pointer(from, ...steps), pointer(base, ...steps), moved);
  }
}

type Building = { index: SchemaIndex; moved: ReadonlyMap<string, string> };

function build(building: Building, location: string, edits: Edits, isCopy: boolean): Value {
  const schema = building.index.at(location) as Value;
  const plain = isObject(schema) ? buildChildren(building, location, schema, edits, isCopy) : schema;
  const beside = edits.beside.get(location);
  const added = beside === undefined ? [] : buildBeside(building, beside);
  const whole =
    added.length === 0 ? plain : addTo(building, location, plain, added, beside as Beside, isCopy);
  const value = edits.inPlace.get(location);
  return value === undefined ? whole : withDefault(building.index, whole, value);
}

function buildChildren(
  building: Building,
  location: string,
  schema: ValueObject,
  edits: Edits,
  isCopy: boolean,
): ValueObject {
  const out = copyOf(schema);
  for (const { steps } of childrenOf(schema)) {
    const [keyword = '', key] = steps;
    const child = build(building, pointer(location, ...steps), edits, isCopy);
    if (key === undefined) out[keyword] = child;
    else (out[keyword] as ValueObject)[key] = child;
  }
  const target = building.index.refOf(location);
  const now = target === undefined ? undefined : building.moved.get(target);
  // An anchor moves with its schema, so a reference by name stays what it is.
  if (now !== undefined && /^#(\/|$)/u.test(String(schema.$ref))) out.$ref = fragmentOf(now);
  if (isCopy) delete out.$anchor;
  return out;
}

/** A copy of the schema and of the lists and maps of schemas in it. */
function copyOf(schema: ValueObject): ValueObject {
  const out = objectOf({});
  for (const [key, value] of Object.entries(schema)) {
    if (Array.isArray(value)) out[key] = [...value];
    else out[key] = isObject(value) ? objectOf(value) : value;
  }
  return out;
}

function objectOf(fields: ValueObject): ValueObject {
  return Object.assign(Object.setPrototypeOf({}, null) as ValueObject, fields);
}

function buildBeside(building: Building, { properties, copies }: Beside): Value[] {
  const added: Value[] = copies.map(({ of, edits }) => buildCopy(building, of, edits));
  if (properties.size === 0) return added;
  const carriers = objectOf({});
  for (const [name, value] of properties) carriers[name] = objectOf({ default: value });
  return [...added, objectOf({ properties: carriers })];
}

/** A copy holds no definitions: what refers to them refers to the original ones. */
function buildCopy(building: Building, of: string, edits: Edits): Value {
  const copy = build(building, of, edits, true);
  if (!isObject(copy)) return copy;
  for (const key of ['$schema', '$id', '$defs', 'definitions']) delete copy[key];
  return copy;
}

function addTo(
  { index }: Building,
  location: string,
  schema: Value,
  added: readonly Value[],
  { copies }: Beside,
  isCopy: boolean,
): Value {
  if (!isObject(schema)) return objectOf({ allOf: [schema, ...added] });
  if (!isCopy && index.isTarget(location)) return wrap(location, schema, added);
  const { $ref: ref, allOf = [], ...rest } = schema;
  const all = allOf as Value[];
  if (ref === undefined) return objectOf({ ...rest, allOf: [...all, ...added] });
  // A copy of what the reference leads to stands for the reference.
  const isReplaced = copies.some(({ of }) => of === index.refOf(location));
  if (isReplaced) return objectOf({ ...rest, allOf: [...all, ...added] });
  // Draft-07 ignores what stands beside a reference.
  if (index.dialect === '07') return objectOf({ ...rest, allOf: [objectOf({ $ref: ref }), ...added] });
  return objectOf({ $ref: ref, ...rest, allOf: [...all, ...added] });
}

function wrap(location: string, schema: ValueObject, added: readonly Value[]): ValueObject {
  const isTop = (key: string) => location === '' && TOP.has(key);
  const pick = (keep: (key: string) => boolean) =>
    objectOf(Object.fromEntries(Object.entries(schema).filter(([key]) => keep(key))) as ValueObject);
  return objectOf({ ...pick(isTop), allOf: [pick((key) => !isTop(key)), ...added] });
}

function withDefault(index: SchemaIndex, schema: Value, value: Value): Value {
  if (!isObject(schema)) return objectOf({ default: value });
  const { $ref: ref, ...rest } = schema;
  if (ref === undefined || index.dialect === '2020-12') return objectOf({ ...schema, default: value });
  return objectOf({ ...rest, allOf: [objectOf({ $ref: ref })], default: value });
}
