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
  if (schema instanceof z.ZodNullable && node === null) return node;
  const inner = unwrap(schema);
  if (inner !== undefined) return mask(inner, node, parent, accepted);
  if (schema instanceof z.ZodUnion) return maskUnion(schema, node, parent, accepted);
  if (typeof node !== 'object' || node === null || isFree(schema)) return node;
  if (Array.isArray(node)) {
    if (!(schema instanceof z.ZodArray)) return SECRET_MASK;
    return node.map((item) => mask(schema.element as z.ZodType, item, {}, accepted));
  }
  const fieldOf = fieldsOf(schema);
  // Of a kind that nobody has thought of here, nobody knows where a secret stands in it.
  if (fieldOf === undefined) return SECRET_MASK;
  const entries = Object.entries(node).map(([key, value]) => {
    const field = fieldOf(key);
    return [key, field === undefined ? SECRET_MASK : mask(field, value, node, accepted)] as const;
  });
  return Object.assign(Object.create(null), Object.fromEntries(entries)) as Value;
}

/** What is within one that adds only what may be missing, or what is made of it. What is masked is as on the wire. */
function unwrap(schema: z.ZodType): z.ZodType | undefined {
  if (schema instanceof z.ZodArray) return undefined;
  if (schema instanceof z.ZodPipe) {
    return (schema.in instanceof z.ZodTransform ? schema.out : schema.in) as z.ZodType;
  }
  return (schema as { unwrap?: () => z.ZodType }).unwrap?.();
}

/** A value of any form: it is shown or hidden as a whole. */
function isFree(schema: z.ZodType): boolean {
  return schema instanceof z.ZodCustom;
}

/** The schema of each key; undefined for what is no object. */
function fieldsOf(schema: z.ZodType): ((key: string) => z.ZodType | undefined) | undefined {
  if (schema instanceof z.ZodRecord) return () => schema.valueType as z.ZodType;
  if (schema instanceof z.ZodObject) return (key) => schema.shape[key] as z.ZodType | undefined;
  return undefined;
}

/** By the first alternative the body is of. */
function maskUnion(schema: z.ZodUnion, node: Value, parent: Parent, accepted: boolean): Value {
  const options = schema.options as readonly z.ZodType[];
  const found = options.find((option) => z.safeDecode(option, node as never).success);
  return found === undefined ? SECRET_MASK : mask(found, node, parent, accepted);
}
