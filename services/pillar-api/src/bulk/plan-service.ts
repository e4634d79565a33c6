import { fromPlain, type Value, type ValueObject } from '@colonnade/value';
import { checkTypes, valueOfTypes } from '../service-events/own-types.ts';
import { isUnchanged, may, type Of, type Planned, type Planning } from './plan.ts';

/**
 * What a service may publish. Enrolments are no part of it: those that are there stay, and a service that is new has none.
 * @throws ColonnadeError unprocessable (a schema that is none) | too_large | forbidden
 */
export async function planService(
  { principal, lookup, schemas }: Planning,
  { id, types }: Of<'service'>,
): Promise<Planned> {
  const found = await lookup.getService(id);
  const after = shownTypes(valueOfTypes(types));
  const before = found === undefined ? {} : { before: shownTypes(found.types) };
  const planned = { kind: 'service', key: id, ...before, after } as const;
  if (isUnchanged(planned)) return { ...planned, change: undefined };
  may(principal, 'service:write');
  await checkTypes(schemas, principal.rateKey, types);
  const record = { id, types: valueOfTypes(types), enrolmentIds: found?.enrolmentIds ?? [] };
  return { ...planned, change: { kind: 'service.put', expect: found?.tick ?? 'absent', record } };
}

/** Schemas as they are: `fromPlain` would make 1.0 of it 1. */
function shownTypes(types: Value): Value {
  return Object.assign(fromPlain({}) as ValueObject, { types });
}
