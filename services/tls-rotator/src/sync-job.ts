import { ownerOf, selectNamespaces } from './rules/namespaces.ts';
import type { SyncJob } from './secrets/tally.ts';
import type { Source } from './source.ts';
import { type Allowed, type IngressTls, readSpec, type Spec } from './spec.ts';
import type { Status } from './status.ts';
import type { Watches } from './watches.ts';

/** Since when every Secret holds this very source. */
export function servedSince({ trust }: Status, source: Source | undefined): number | undefined {
  if (source === undefined || trust?.fingerprint !== trustSign(source)) return undefined;
  return Date.parse(trust.servedSince);
}

/** What is served, whole: a leaf whose issuer was exchanged under it needs other CAs. */
export function trustSign({ facts }: Source): string {
  return facts.chainFingerprint;
}

/**
 * What a sync of the Secrets of an IngressTLS has to know: which namespaces, whose they are, what is there.
 * @throws ColonnadeError `unavailable`: they are not watched any more; `forbidden`: the rotator may not list them
 */
export async function syncJobFor(
  ingress: IngressTls,
  spec: Spec,
  source: Source,
  { watches, allowed }: { watches: Watches; allowed: Allowed },
): Promise<SyncJob> {
  const { secretName } = spec;
  const secrets = watches.secretsNamed(secretName);
  await secrets.listed();
  const namespaces = [...watches.namespaces.entries()].map(([, facts]) => facts);
  const claims = [...watches.ingresses.entries()].flatMap(([, other]) => claimOf(other, allowed) ?? []);
  return {
    owner: ingress.metadata.uid,
    secretName,
    createIfMissing: spec.createIfMissing,
    data: source.data,
    selection: selectNamespaces({ ...spec, source: spec.sourceSecretRef }, namespaces),
    isOurs: (namespace) => ownerOf(claims, secretName, namespace) === ingress.metadata.name,
    targets: {
      get: (namespace) => secrets.get(`${namespace}/${secretName}`),
      note: (secret) => secrets.note(secret),
    },
  };
}

/** One that is refused or on its way out claims nothing. */
function claimOf(ingress: IngressTls, allowed: Allowed) {
  const { metadata } = ingress;
  if (metadata.deletionTimestamp !== undefined) return undefined;
  try {
    const { secretName, namespaces } = readSpec(ingress, allowed);
    return {
      name: metadata.name,
      createdAtMs: Date.parse(metadata.creationTimestamp ?? ''),
      secretName,
      namespaces,
    };
  } catch {
    return undefined;
  }
}
