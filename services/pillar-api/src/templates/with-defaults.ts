import type { Value } from '@colonnade/value';
import { canHave, type Defaults, hasAnySite } from './fitting.ts';
import { findPlaces } from './placing.ts';
import { rebuild } from './rebuild.ts';
import type { Validator } from './validator.ts';

/** Why a default is not in the schema. */
export type LeftOut = {
  name: string;
  /** No such property; it breaks the schema; or other defaults contradict every branch it has a place in. */
  reason: 'no_property' | 'breaks_schema' | 'other_branch';
};

/**
 * Seed 000: the values saved for a template become `default`s of its properties. The result accepts exactly the
 * instances the schema accepted, and other uses of a schema that is shared, branches that are contradicted and
 * nested instances get no default.
 */
export function putDefaults(
  validator: Validator,
  saved: Defaults,
): { schema: Value; applied: string[]; leftOut: LeftOut[] } {
  const leftOut: LeftOut[] = [];
  const fitting = new Map<string, Value>();
  for (const [name, value] of saved) {
    if (!hasAnySite(validator, '', name)) leftOut.push({ name, reason: 'no_property' });
    else if (!canHave(validator, '', name, value)) leftOut.push({ name, reason: 'breaks_schema' });
    else fitting.set(name, value);
  }
  const edits = findPlaces(validator, fitting);
  const applied: string[] = [];
  for (const name of fitting.keys()) {
    if (edits.placed.has(name)) applied.push(name);
    else leftOut.push({ name, reason: 'other_branch' });
  }
  return { schema: rebuild(validator.index, edits), applied, leftOut };
}
