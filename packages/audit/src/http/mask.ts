import { SECRET_MASK, secretFields } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import { z } from 'zod';

type Parent = Readonly<Record<string, unknown>>;

/**
 * A body without its secrets, by the schema of the route: which field is one stands there, however it is called.
 * @param accepted whether the request had success
 * @returns undefined for a body that is not of its schema: nobody knows then where in it a secret stands
 */
export function maskBody(schema: z.ZodType, body: Value, accepted: boolean): Value | undefined {
  if (!z.safeDecode(schema, body as never).success) return undefined;
  return mask(schema, body, {}, accepted);
}

function mask(schema: z.ZodType, node: Value, parent: Parent, accepted: boolean): Value {
  if (secretFields.get(schema)?.isSecret(parent, accepted) === true) return SECRET_MASK;
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return node === null ? node : mask(schema.unwrap() as z.ZodType, node, parent, accepted);
  }
  if (schema instanceof z.ZodUnion) return maskUnion(schema, node, parent, accepted);
  if (Array.isArray(node)) {
    if (!(schema instanceof z.ZodArray)) return node;
    return node.map((item) => mask(schema.element as z.ZodType, item, {}, accepted));
  }
  if (schema instanceof z.ZodObject && typeof node === 'object' && node !== null) {
    return maskObject(schema, node, accepted);
  }
  return node;
}

function maskObject(schema: z.ZodObject, node: { [key: string]: Value }, accepted: boolean): Value {
  const entries = Object.entries(node).map(([key, value]) => {
    const field = schema.shape[key] as z.ZodType | undefined;
    return [key, field === undefined ? value : mask(field, value, node, accepted)] as const;
  });
  return Object.assign(Object.create(null), Object.fromEntries(entries)) as Value;
}

/** By the first alternative the body is of. */
function maskUnion(schema: z.ZodUnion, node: Value, parent: Parent, accepted: boolean): Value {
  const options = schema.options as readonly z.ZodType[];
  const found = options.find((option) => z.safeDecode(option, node as never).success);
  return found === undefined ? SECRET_MASK : mask(found, node, parent, accepted);
}
