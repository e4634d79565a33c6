import type { ServiceType } from '@colonnade/contracts';
import type { ServiceRecord } from '@colonnade/estate-store';
import type { Value } from '@colonnade/value';

/** The types a service may publish; the record holds what `asValue` of the routes made. */
export function typesOf({ types }: Pick<ServiceRecord, 'types'>): readonly ServiceType[] {
  return types as unknown as readonly ServiceType[];
}

/**
 * Whether a schema of the service marks something as secret (`writeOnly`). An event that was refused may hold it anywhere,
 * so nothing of its data is kept then, whichever type it said it was.
 */
export function marksSecrets(service: Pick<ServiceRecord, 'types'>): boolean {
  return typesOf(service).some(({ schema }) => schema !== undefined && isMarked(schema));
}

function isMarked(schema: Value): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  if (!Array.isArray(schema) && (schema as { writeOnly?: Value }).writeOnly === true) return true;
  return Object.values(schema).some(isMarked);
}
