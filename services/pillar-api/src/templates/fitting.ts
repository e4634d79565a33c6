import type { Value } from '@colonnade/value';
import { isObject, own, pointer } from './keywords.ts';
import type { Validator } from './validator.ts';

/** Whether values can be properties of an instance, asked of the schema that is applied to the whole instance. */

export type Defaults = ReadonlyMap<string, Value>;

/** The property of this name at this very schema; undefined: it has none. */
export function propertyOf(
  { index }: Pick<Validator, 'index'>,
  location: string,
  name: string,
): string | undefined {
  const schema = index.at(location);
  const properties = isObject(schema) ? own(schema, 'properties') : undefined;
  // A validator does not look at a property of this name.
  if (name === '__proto__' || !isObject(properties)) return undefined;
  return Object.hasOwn(properties, name) ? pointer(location, 'properties', name) : undefined;
}

/** Schemas that always apply where the one at this location does. */
export function alwaysWith({ index }: Pick<Validator, 'index'>, location: string): string[] {
  const ref = index.refOf(location);
  return [...listAt(index, location, 'allOf'), ...(ref === undefined ? [] : [ref])];
}

/** Schemas of which not each applies, in groups, one or several of a group; those a template's defaults may go into. */
export function branchesOf({ index }: Pick<Validator, 'index'>, location: string): string[][] {
  const schema = index.at(location);
  if (!isObject(schema)) return [];
  const choices = ['then', 'else'].flatMap((key) => singleAt(index, location, key));
  const groups = [listAt(index, location, 'anyOf'), listAt(index, location, 'oneOf'), choices];
  const dependent = ['dependentSchemas', 'dependencies'].flatMap((keyword) => {
    const map = own(schema, keyword);
    return isObject(map) ? Object.keys(map).map((key) => pointer(location, keyword, key)) : [];
  });
  return [...groups, ...dependent.map((one) => [one])]
    .map((group) => group.filter((one) => index.at(one) !== undefined))
    .filter((group) => group.length > 0);
}

type Index = Validator['index'];

function listAt(index: Index, location: string, keyword: string): string[] {
  const schema = index.at(location);
  const list = isObject(schema) ? own(schema, keyword) : undefined;
  return Array.isArray(list) ? list.map((_, at) => pointer(location, keyword, String(at))) : [];
}

function singleAt(index: Index, location: string, keyword: string): string[] {
  const at = pointer(location, keyword);
  return index.at(at) === undefined ? [] : [at];
}

/** Whether this schema, or one that always applies with it, has a property of this name. */
export function hasSite(validator: Validator, location: string, name: string): boolean {
  if (propertyOf(validator, location, name) !== undefined) return true;
  return alwaysWith(validator, location).some((next) => hasSite(validator, next, name));
}

/** As hasSite, branches included. */
export function hasAnySite(validator: Validator, location: string, name: string): boolean {
  if (propertyOf(validator, location, name) !== undefined) return true;
  const next = [...alwaysWith(validator, location), ...branchesOf(validator, location).flat()];
  return next.some((one) => hasAnySite(validator, one, name));
}

/**
 * Whether an instance that has this property can fit here, as far as the property alone can say: no schema that always
 * applies refuses it, and of each choice there is a branch that does not.
 */
export function canHave(validator: Validator, location: string, name: string, value: Value): boolean {
  const { index } = validator;
  const schema = index.at(location);
  if (typeof schema === 'boolean') return schema;
  if (!rulesFor(validator, location, name).every((rule) => validator.fits(rule, value))) return false;
  const names = pointer(location, 'propertyNames');
  if (index.at(names) !== undefined && !validator.fits(names, name)) return false;
  if (!alwaysWith(validator, location).every((next) => canHave(validator, next, name, value))) return false;
  const lists = ['anyOf', 'oneOf'].map((keyword) => listAt(index, location, keyword));
  const isFree = lists.every(
    (list) => list.length === 0 || list.some((one) => canHave(validator, one, name, value)),
  );
  return isFree && canHaveConditionally(validator, location, name, value);
}

function canHaveConditionally(validator: Validator, location: string, name: string, value: Value): boolean {
  if (validator.index.at(pointer(location, 'if')) === undefined) return true;
  return ['then', 'else'].some((key) => {
    const branch = pointer(location, key);
    return validator.index.at(branch) === undefined || canHave(validator, branch, name, value);
  });
}

/** The schemas of this one that a property of this name must fit. */
function rulesFor(validator: Validator, location: string, name: string): string[] {
  const schema = validator.index.at(location);
  if (!isObject(schema)) return [];
  const rules: string[] = [];
  const property = propertyOf(validator, location, name);
  if (property !== undefined) rules.push(property);
  const patterns = own(schema, 'patternProperties');
  for (const pattern of isObject(patterns) ? Object.keys(patterns) : []) {
    if (new RegExp(pattern, 'u').test(name)) rules.push(pointer(location, 'patternProperties', pattern));
  }
  const others = pointer(location, 'additionalProperties');
  if (rules.length === 0 && validator.index.at(others) !== undefined) rules.push(others);
  return rules;
}

/** Whether a branch may be the one these values were meant for: it contradicts none of them. */
export function isBranchOf(validator: Validator, branch: string, defaults: Defaults): boolean {
  for (const [name, value] of defaults) if (!canHave(validator, branch, name, value)) return false;
  const [, base = '', keyword] = /^(.*)\/(then|else)$/u.exec(branch) ?? [];
  const condition = pointer(base, 'if');
  // A schema under a name of the user's, such as "then", is no branch of a condition.
  if (keyword === undefined || validator.index.at(base) === undefined) return true;
  // Without a condition neither is ever applied.
  if (validator.index.at(condition) === undefined) return false;
  if (keyword === 'else') return !isSettled(validator, condition, defaults);
  return [...defaults].every(([name, value]) => canHave(validator, condition, name, value));
}

/** Whether these values alone make the condition true, whatever else an instance holds. */
function isSettled(validator: Validator, condition: string, defaults: Defaults): boolean {
  const schema = validator.index.at(condition);
  const properties = isObject(schema) ? own(schema, 'properties') : undefined;
  const asks = isObject(properties) ? Object.keys(properties) : [];
  if (asks.length === 0 || !asks.every((name) => defaults.has(name))) return false;
  return validator.fits(condition, Object.fromEntries(defaults));
}
