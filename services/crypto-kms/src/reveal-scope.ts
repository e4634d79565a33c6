import type { Scope, TgtType } from '@colonnade/contracts';

/** Where a secret stands that is to be revealed; without a name: all that stand there. */
export type RevealPlace = { tgt_type: TgtType; name?: string };

/**
 * Whether a token with these scopes may reveal there (pure). Which collections lie below which only the estate knows, so a scope
 * of collections holds here for all of them, and pillar-api draws it closer.
 * @param scopes undefined: everywhere
 */
export function mayReveal(scopes: readonly Scope[] | undefined, { tgt_type, name }: RevealPlace): boolean {
  if (scopes === undefined) return true;
  return scopes.some(({ tgt_types, collections, name_prefixes }) => {
    if (tgt_types !== undefined && !tgt_types.includes(tgt_type)) return false;
    if (collections !== undefined && tgt_type !== 'collection') return false;
    return name_prefixes === undefined || name_prefixes.some((prefix) => name?.startsWith(prefix) === true);
  });
}
