import type { ValueObject } from '@colonnade/value';
import { readDocument } from '../../shared/named-values.ts';

export const TYPE_OPTION = {
  type: {
    value: 'TYPE[=FILE]',
    repeat: true,
    help: 'a type of events it may publish, with the JSON Schema of their data in a file; several times',
  },
} as const;

/** The types of a service as the API takes them. */
export function readTypes(given: readonly string[]): Promise<ValueObject[]> {
  return Promise.all(
    given.map(async (text): Promise<ValueObject> => {
      const [type = '', ...rest] = text.split('=');
      return rest.length === 0 ? { type } : { type, schema: await readDocument(rest.join('=')) };
    }),
  );
}

export function servicePath(id: string): string {
  return `/services/${encodeURIComponent(id)}`;
}
