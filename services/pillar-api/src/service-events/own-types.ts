import { ColonnadeError, LIMITS, type ServiceType } from '@colonnade/contracts';
import type { ServiceRecord } from '@colonnade/estate-store';
import { canonicalText, type Value, type ValueObject } from '@colonnade/value';
import type { Schemas } from '../templates/schemas.ts';

/** The types a service may publish; the record holds what `valueOfTypes` made. */
export function typesOf({ types }: Pick<ServiceRecord, 'types'>): readonly ServiceType[] {
  return types as unknown as readonly ServiceType[];
}

/** As a store keeps them. */
export function valueOfTypes(types: readonly ServiceType[]): Value {
  return types.map(({ type, schema }): ValueObject => (schema === undefined ? { type } : { type, schema }));
}

/** @throws ColonnadeError `unprocessable` naming the type whose schema is none, `too_large` | as `Schemas.check` */
export async function checkTypes(
  schemas: Pick<Schemas, 'check'>,
  caller: string,
  types: readonly ServiceType[],
): Promise<void> {
  for (const [at, { schema }] of types.entries()) {
    if (schema === undefined) continue;
    const field = `types.${at}.schema`;
    if (Buffer.byteLength(canonicalText(schema)) > LIMITS.schemaBytes)
      throw new ColonnadeError('too_large', `${field}: is over ${LIMITS.schemaBytes} bytes`, { field });
    await schemas.check(caller, schema).catch((thrown) => {
      if (!(thrown instanceof ColonnadeError) || thrown.code !== 'unprocessable') throw thrown;
      throw new ColonnadeError('unprocessable', `types.${at}.${thrown.message}`, { field, cause: thrown });
    });
  }
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
