import { isBegun } from './nodes/node-book.ts';
import { type Allowed, type IngressTls, readSpec, requireNodeWork, type Spec } from './spec.ts';
import type { Status } from './status.ts';
import type { Watches } from './watches.ts';

/**
 * Whether a node was begun before `apiServerOIDC` was switched off, and can still be reached: it is finished all the
 * same, for a node left half done is none that anybody asked for.
 */
export function isLeftBegun(
  { apiServerOIDC: oidc }: Spec,
  { nodes = [] }: Pick<Status, 'nodes'>,
  allowed: Allowed,
): boolean {
  if (oidc.enabled || oidc.ssh === undefined || !nodes.some(isBegun)) return false;
  try {
    requireNodeWork(oidc, allowed);
    return true;
  } catch {
    return false;
  }
}

/**
 * Tells, whenever it is asked, whether the watches know of another source or spec by now than at this moment. While the
 * API server is away they know of none; and a spec by which the nodes cannot be gone on with counts for none.
 */
export function watchChanges(
  { metadata: { name } }: IngressTls,
  { sourceSecretRef: source }: Spec,
  { watches, allowed }: { watches: Watches; allowed: Allowed },
): () => boolean {
  const secrets = watches.secretsNamed(source.name);
  const version = () => secrets.get(`${source.namespace}/${source.name}`)?.resourceVersion;
  const generation = () => watches.ingresses.get(name)?.metadata.generation;
  const began = { version: version(), generation: generation() };
  const canGoOn = () => {
    const latest = watches.ingresses.get(name);
    try {
      return latest !== undefined && readSpec(latest, allowed).apiServerOIDC.ssh !== undefined;
    } catch {
      return false;
    }
  };
  return () => version() !== began.version || (generation() !== began.generation && canGoOn());
}
