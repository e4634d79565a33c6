import { toColonnadeError } from '@colonnade/contracts';
import { MERGE_PATCH } from './kube/client.ts';
import { FINALIZER, ingressTlsPath } from './kube/objects.ts';
import type { ReconcileDeps } from './reconcile.ts';
import { deleteOurs } from './secrets/write-target.ts';
import { type IngressTls, readSpec, type Spec } from './spec.ts';
import type { Status } from './status.ts';

/**
 * An IngressTLS goes: a node that was begun is finished first, then what we made goes too if the spec says so. What
 * others made is not touched.
 * @returns when to look again, milliseconds
 */
export async function cleanUp(ingress: IngressTls, deps: ReconcileDeps): Promise<number> {
  const { metadata } = ingress;
  if (!metadata.finalizers?.includes(FINALIZER)) return deps.resyncMs;
  const spec = readable(ingress, deps);
  if (spec?.apiServerOIDC.enabled) {
    const nobody = { source: undefined, servedSinceMs: undefined, onProgress: async () => {} };
    const job = { ingress, oidc: spec.apiServerOIDC, ...nobody, finishOnly: true };
    const { unfinished, againMs } = await deps.roller.roll({
      ...job,
      status: (ingress.status ?? {}) as Status,
    });
    if (unfinished) return againMs ?? 1000;
  }
  if (spec?.deletionPolicy === 'Delete') await deleteAllOurs(ingress, spec, () => true, deps);
  const finalizers = metadata.finalizers.filter((name) => name !== FINALIZER);
  const body = { metadata: { resourceVersion: metadata.resourceVersion, finalizers } };
  await deps.client
    .request('PATCH', ingressTlsPath(metadata.name), { body, type: MERGE_PATCH })
    .catch((thrown) => {
      if (toColonnadeError(thrown).code !== 'not_found') throw thrown;
    });
  deps.sync.forget(metadata.uid);
  deps.roller.forget(metadata.uid);
  await deps.recorder.removed(ingress);
  return deps.resyncMs;
}

/** A spec that is refused has never done anything. */
function readable(ingress: IngressTls, { allowed }: ReconcileDeps): Spec | undefined {
  try {
    return readSpec(ingress, allowed);
  } catch {
    return undefined;
  }
}

/** Deletes the Secrets that were made for this IngressTLS in the namespaces asked for. */
export async function deleteAllOurs(
  ingress: IngressTls,
  { secretName }: Spec,
  isWanted: (namespace: string) => boolean,
  { client, watches, recorder }: ReconcileDeps,
): Promise<void> {
  const secrets = watches.secretsNamed(secretName);
  await secrets.synced;
  const { uid: owner } = ingress.metadata;
  const gone: string[] = [];
  for (const [key, seen] of [...secrets.entries()]) {
    const namespace = key.split('/', 1)[0] as string;
    if (seen.createdFor !== owner || !isWanted(namespace)) continue;
    if (await deleteOurs(client, { namespace, secretName, seen, owner })) gone.push(namespace);
  }
  await recorder.secretsDeleted(ingress, secretName, gone);
}
