import type { Value } from '@colonnade/value';
import {
  alwaysWith,
  branchesOf,
  type Defaults,
  hasAnySite,
  hasSite,
  isBranchOf,
  propertyOf,
} from './fitting.ts';
import type { Validator } from './validator.ts';

/** Where defaults go in a schema; `rebuild.ts` puts them there. */
export type Edits = {
  /** Locations of properties that get this default in their place. */
  inPlace: Map<string, Value>;
  /** What is added, beside it, to the schema at a location. */
  beside: Map<string, Beside>;
  /** Names of the defaults that found a place. */
  placed: Set<string>;
};

export type Beside = {
  /** Properties that carry nothing but a default. */
  properties: Map<string, Value>;
  /** Copies of schemas, each with edits of its own; the schema at this location applies what is copied anyway. */
  copies: { of: string; edits: Edits }[];
};

/** More copies than this make no schema anybody could read. */
const MAX_COPIES = 50;

/**
 * Finds places for defaults, so that they apply to the instance itself and to nothing else that shares a schema with it:
 * the property where it stands; where a `$ref` leads to the schema, beside the reference; and below branches that
 * are shared, in a copy of them. A default stands in a branch only when no default contradicts that branch.
 * @param defaults those that fit the schema, and have a place in it
 */
export function findPlaces(validator: Validator, defaults: Defaults): Edits {
  const room = { copies: MAX_COPIES };
  return place({ validator, defaults, room }, '', [...defaults.keys()], false);
}

type Search = { validator: Validator; defaults: Defaults; room: { copies: number } };

/** @param isCopy nothing refers to a copy, so that everything in it may be changed */
function place(search: Search, location: string, names: readonly string[], isCopy: boolean): Edits {
  const edits: Edits = { inPlace: new Map(), beside: new Map(), placed: new Set() };
  if (!isCopy && search.validator.index.isTarget(location)) {
    placeBeside(search, edits, location, location, names);
    return edits;
  }
  const wanted = new Set(names.filter((name) => hasAnySite(search.validator, location, name)));
  placeOwn(search, edits, location, wanted, isCopy);
  placeAlways(search, edits, location, wanted, isCopy);
  placeInBranches(search, edits, location, wanted, isCopy);
  return edits;
}

/** Takes from `wanted` what has its place at this very schema. */
function placeOwn(
  { validator, defaults }: Search,
  edits: Edits,
  location: string,
  wanted: Set<string>,
  isCopy: boolean,
): void {
  for (const name of wanted) {
    const property = propertyOf(validator, location, name);
    if (property === undefined) continue;
    const value = defaults.get(name) as Value;
    if (isCopy || !validator.index.isTarget(property)) edits.inPlace.set(property, value);
    else besideOf(edits, location).properties.set(name, value);
    edits.placed.add(name);
    wanted.delete(name);
  }
}

/** Goes on into what always applies with this schema; a name that has its place there is not looked for elsewhere. */
function placeAlways(
  search: Search,
  edits: Edits,
  location: string,
  wanted: Set<string>,
  isCopy: boolean,
): void {
  const { validator } = search;
  const ref = validator.index.refOf(location);
  const always = alwaysWith(validator, location);
  for (const next of always) {
    const sure = [...wanted].filter((name) => hasSite(validator, next, name));
    for (const name of sure) wanted.delete(name);
    // In what applies only sometimes, a name may have several places.
    const unsure = [...wanted].filter(
      (name) => hasAnySite(validator, next, name) && !always.some((one) => hasSite(validator, one, name)),
    );
    const names = [...sure, ...unsure];
    if (names.length === 0) continue;
    if (next === ref) placeBeside(search, edits, location, next, names);
    else merge(edits, place(search, next, names, isCopy));
  }
}

function placeInBranches(
  search: Search,
  edits: Edits,
  location: string,
  wanted: ReadonlySet<string>,
  isCopy: boolean,
): void {
  const { validator, defaults } = search;
  for (const branch of branchesOf(validator, location).flat()) {
    const names = [...wanted].filter((name) => hasAnySite(validator, branch, name));
    if (names.length === 0 || !isBranchOf(validator, branch, defaults)) continue;
    merge(edits, place(search, branch, names, isCopy));
  }
}

/** The schema at `of` is shared: what has a sure place in it goes beside its use here, the rest into a copy of it. */
function placeBeside(
  search: Search,
  edits: Edits,
  location: string,
  of: string,
  names: readonly string[],
): void {
  const { validator, defaults, room } = search;
  const unsure: string[] = [];
  for (const name of names) {
    if (!hasSite(validator, of, name)) unsure.push(name);
    else {
      besideOf(edits, location).properties.set(name, defaults.get(name) as Value);
      edits.placed.add(name);
    }
  }
  if (unsure.length === 0 || room.copies === 0) return;
  room.copies -= 1;
  const inCopy = place(search, of, unsure, true);
  if (inCopy.placed.size === 0) return;
  besideOf(edits, location).copies.push({ of, edits: inCopy });
  for (const name of inCopy.placed) edits.placed.add(name);
}

function besideOf(edits: Edits, location: string): Beside {
  const found = edits.beside.get(location) ?? { properties: new Map(), copies: [] };
  edits.beside.set(location, found);
  return found;
}

function merge(edits: Edits, more: Edits): void {
  for (const [location, value] of more.inPlace) edits.inPlace.set(location, value);
  for (const [location, beside] of more.beside) edits.beside.set(location, beside);
  for (const name of more.placed) edits.placed.add(name);
}
