import { z } from 'zod';

/** Says of one field whether what stands there must never be shown or recorded. */
export type SecretRule = {
  /**
   * @param parent the object the field stands in, as on the wire
   * @param accepted false when the request was refused: nobody knows then what the sender took it for
   */
  isSecret: (parent: Readonly<Record<string, unknown>>, accepted: boolean) => boolean;
};

/**
 * The fields of HTTP bodies that hold secrets. It is the schema that says so, not the field's name: a pillar may well be
 * called `password` and be public, and a secret may be called anything.
 */
export const secretFields = z.registry<SecretRule>();

/** Marks a field as secret, always or by a rule. */
export function secretField<S extends z.ZodType>(
  schema: S,
  isSecret: SecretRule['isSecret'] = () => true,
): S {
  const own = schema.clone() as S;
  secretFields.add(own, { isSecret });
  return own;
}

/** A value that is sent: a refused one may have been meant for a secret that is there. */
export function secretIfRefused(parent: Readonly<Record<string, unknown>>, accepted: boolean): boolean {
  return !accepted || secretIfMarked(parent);
}

/** The value of a pillar, where the pillar itself says whether it is a secret. */
export function secretIfMarked(parent: Readonly<Record<string, unknown>>): boolean {
  return parent.is_secret === true;
}
