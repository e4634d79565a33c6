import { toColonnadeError } from '@colonnade/contracts';
import { isLeftBegun } from './begun.ts';
import { MERGE_PATCH } from './kube/client.ts';
import { FINALIZER, ingressTlsPath } from './kube/objects.ts';
import type { RollResult } from './nodes/roller.ts';
import type { ReconcileDeps } from './reconcile.ts';
import { deleteOurs } from './secrets/write-target.ts';
import { type IngressTls, parseSpec, requireNodeWork, type Spec } from './spec.ts';
import type { Status } from './status.ts';

/** Between two tries to reach a node that holds a deletion up. */
const AGAIN_MS = 5000;

/**
 * An IngressTLS goes: a node that was begun is finished first, then what we made goes too if the spec says so. What
 * others made is not touched.
 * @returns when to look again, milliseconds
 */
export async function cleanUp(ingress: IngressTls, deps: ReconcileDeps): Promise<number> {
  const { metadata } = ingress;
  if (!metadata.finalizers?.includes(FINALIZER)) return deps.resyncMs;
  const spec = readable(ingress);
  const held = spec === undefined ? undefined : await finishNodes(ingress, spec, deps);
  if (held !== undefined) {
    deps.events.deletionWaits({ name: metadata.name, message: held.message });
    return Math.max(held.againMs ?? 0, AGAIN_MS);
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

/** What is not allowed any more may have been, and has left its Secrets. What cannot be read has done nothing. */
function readable(ingress: IngressTls): Spec | undefined {
  try {
    return parseSpec(ingress);
  } catch {
    return undefined;
  }
}

/** @returns what is still to be waited for */
async function finishNodes(
  ingress: IngressTls,
  spec: Spec,
  { allowed, roller, stop }: ReconcileDeps,
): Promise<RollResult | undefined> {
  const { apiServerOIDC: oidc } = spec;
  const status = (ingress.status ?? {}) as Status;
  if (!oidc.enabled && !isLeftBegun(spec, status, allowed)) return undefined;
  try {
    requireNodeWork(oidc, allowed);
  } catch {
    return undefined;
  }
  const nobody = { source: undefined, servedSinceMs: undefined, onProgress: async () => {} };
  const job = { ingress, oidc, status, ...nobody, finishOnly: true, isOutdated: () => false, stop };
  const result = await roller.roll(job);
  return result.unfinished ? result : undefined;
}

/** Deletes the Secrets that were made for this IngressTLS in the namespaces asked for. */
export async function deleteAllOurs(
  ingress: IngressTls,
  { secretName }: Spec,
  isWanted: (namespace: string) => boolean,
  { client, watches, recorder }: ReconcileDeps,
): Promise<void> {
  const secrets = watches.secretsNamed(secretName);
  await secrets.listed();
  const { uid: owner } = ingress.metadata;
  const gone: string[] = [];
  for (const [key, seen] of [...secrets.entries()]) {
    const namespace = key.split('/', 1)[0] as string;
    if (seen.createdFor !== owner || !isWanted(namespace)) continue;
    if (await deleteOurs(client, { namespace, secretName, seen, owner })) gone.push(namespace);
  }
  await recorder.secretsDeleted(ingress, secretName, gone);
}
