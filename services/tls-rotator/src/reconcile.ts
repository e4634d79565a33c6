import { toColonnadeError } from '@colonnade/contracts';
import { isLeftBegun, watchChanges } from './begun.ts';
import { cleanUp, deleteAllOurs } from './clean-up.ts';
import type { Events } from './events.ts';
import { type KubeClient, MERGE_PATCH } from './kube/client.ts';
import { FINALIZER, ingressTlsPath } from './kube/objects.ts';
import type { NodeRoller, RollResult } from './nodes/roller.ts';
import type { Recorder } from './record/recorder.ts';
import { dropAt } from './rules/trust-order.ts';
import type { SecretSync } from './secrets/sync.ts';
import type { SyncResult } from './secrets/tally.ts';
import { GRANT, readSource, type Source, type SourceResult } from './source.ts';
import { type Allowed, type IngressTls, readSpec, type Spec } from './spec.ts';
import { nextConditions, type Status, sameStatus, statusPatch } from './status.ts';
import { servedSince, syncJobFor, trustSign } from './sync-job.ts';
import { type Draft, judge } from './verdicts.ts';
import type { Watches } from './watches.ts';

export type ReconcileDeps = {
  client: KubeClient;
  watches: Watches;
  sync: SecretSync;
  roller: NodeRoller;
  allowed: Allowed;
  isLeader: () => boolean;
  events: Events;
  recorder: Recorder;
  resyncMs: number;
  /** The rotator is being ended. */
  stop: AbortSignal;
};

/**
 * One pass over one IngressTLS: source, nodes, Secrets, status, in this order of trust (seed 004).
 * @returns when to look again at the latest, milliseconds
 * @throws ColonnadeError `unavailable` and the like: the pass is to be tried again
 */
export async function reconcile(name: string, deps: ReconcileDeps): Promise<number> {
  const { watches, resyncMs } = deps;
  const ingress = watches.ingresses.get(name);
  if (ingress === undefined || !deps.isLeader()) return resyncMs;
  await Promise.all([watches.namespaces.synced, watches.ingresses.synced]);
  if (ingress.metadata.deletionTimestamp !== undefined) return cleanUp(ingress, deps);
  if (!ingress.metadata.finalizers?.includes(FINALIZER)) await addFinalizer(ingress, deps);
  const draft = await pass(ingress, deps);
  await writeStatus(watches.ingresses.get(name) ?? ingress, draft, deps);
  deps.events.passEnded();
  return Math.min(draft.againMs ?? resyncMs, resyncMs);
}

async function pass(ingress: IngressTls, deps: ReconcileDeps): Promise<Draft> {
  const status = (ingress.status ?? {}) as Status;
  let spec: Spec;
  try {
    spec = readSpec(ingress, deps.allowed);
  } catch (thrown) {
    const { code, message } = toColonnadeError(thrown);
    return { refused: { reason: code === 'forbidden' ? 'NotAllowed' : 'SpecInvalid', message } };
  }
  const found = await readSource(deps.client, spec);
  const source = found.ok ? found.source : undefined;
  const served = servedSince(status, source);
  const isOutdated = watchChanges(ingress, spec, deps);
  const nodes = await rollNodes(ingress, deps, { spec, found, source, served, status, isOutdated });
  const base: Draft = {
    paused: spec.paused,
    source: found,
    ...(nodes === undefined ? {} : { nodes, againMs: nodes.againMs }),
  };
  const { enabled } = spec.apiServerOIDC;
  if (!found.ok || spec.paused || (enabled && nodes?.state !== 'done')) return base;
  if (served === undefined && status.trust !== undefined) await forgetTrust(ingress, deps);
  const secrets = await syncSecrets(ingress, spec, found.source, deps);
  if ('denied' in secrets) return { ...base, ...secrets };
  const trust = trustAfter(spec, found.source, secrets, served);
  const retryMs = secrets.retryAtMs === undefined ? undefined : Math.max(100, secrets.retryAtMs - Date.now());
  const waits = [base.againMs, retryMs, trust?.againMs].filter((ms) => ms !== undefined);
  return {
    ...base,
    secrets,
    ...(trust === undefined ? {} : { trust }),
    ...(waits.length === 0 ? {} : { againMs: Math.min(...waits) }),
  };
}

async function rollNodes(
  ingress: IngressTls,
  deps: ReconcileDeps,
  job: {
    spec: Spec;
    found: SourceResult;
    source: Source | undefined;
    served: number | undefined;
    status: Status;
    isOutdated: () => boolean;
  },
): Promise<RollResult | undefined> {
  const { spec, found, source, served, status, isOutdated } = job;
  const { enabled } = spec.apiServerOIDC;
  const { roller, isLeader, watches, stop } = deps;
  if (!enabled && !isLeftBegun(spec, status, deps.allowed)) return undefined;
  const finishOnly = !enabled || spec.paused || source === undefined || !isLeader();
  const onProgress = async (nodes: RollResult) => {
    const latest = watches.ingresses.get(ingress.metadata.name) ?? ingress;
    // The API server that goes down may be the one we talk to: the next pass tells it.
    await writeStatus(latest, { source: found, nodes }, deps).catch(() => undefined);
  };
  return roller.roll({
    ingress,
    oidc: spec.apiServerOIDC,
    source,
    servedSinceMs: served,
    finishOnly,
    status,
    onProgress,
    isOutdated,
    stop,
  });
}

async function syncSecrets(
  ingress: IngressTls,
  spec: Spec,
  source: Source,
  deps: ReconcileDeps,
): Promise<SyncResult | { denied: string }> {
  const { sync, recorder } = deps;
  const { secretName } = spec;
  const job = await syncJobFor(ingress, spec, source, deps).catch((thrown: unknown) => {
    if (toColonnadeError(thrown).code === 'forbidden') return undefined;
    throw thrown;
  });
  if (job === undefined) return { denied: `Secrets ${secretName} may not be listed: ${GRANT}` };
  const result = await sync.run(job);
  await recorder.secretsWritten(ingress, secretName, result.written);
  if (spec.deletionPolicy === 'Delete') {
    const kept = new Set([...job.selection.targets, ...job.selection.terminating]);
    await deleteAllOurs(ingress, spec, (namespace) => !kept.has(namespace), deps);
  }
  return result;
}

/**
 * Before the first Secret changes: what is served from now on is a mixture. Went the source back meanwhile, what it was
 * before would count as served all the while, and the CA of what was written would be dropped at once.
 */
async function forgetTrust({ metadata }: IngressTls, { client, watches }: ReconcileDeps): Promise<void> {
  const path = ingressTlsPath(metadata.name, 'status');
  const body = { status: { trust: null } };
  watches.ingresses.note(await client.request<IngressTls>('PATCH', path, { body, type: MERGE_PATCH }));
}

function trustAfter(
  spec: Spec,
  source: Source,
  secrets: SyncResult,
  servedSinceMs: number | undefined,
): Draft['trust'] {
  const { failed, contested } = secrets.counts;
  // While one of them may still serve the old certificate, the old CA stays.
  if (failed + contested > 0 && servedSinceMs === undefined) return undefined;
  const since = servedSinceMs ?? Math.floor(Date.now() / 1000) * 1000;
  const { enabled, dropOldCAAfterSeconds } = spec.apiServerOIDC;
  const base = { fingerprint: trustSign(source), servedSince: new Date(since).toISOString() };
  if (!enabled) return base;
  const nowMs = Date.now();
  const at = dropAt({ source: '', servedSinceMs: since, dropAfterMs: dropOldCAAfterSeconds * 1000, nowMs });
  // Due at once: the next pass does it.
  if (at === undefined) return servedSinceMs === undefined ? { ...base, againMs: 100 } : base;
  return { ...base, dropOldAt: new Date(at).toISOString(), againMs: Math.max(100, at - nowMs) };
}

async function addFinalizer({ metadata }: IngressTls, { client, watches }: ReconcileDeps): Promise<void> {
  const finalizers = [...(metadata.finalizers ?? []), FINALIZER];
  const body = { metadata: { resourceVersion: metadata.resourceVersion, finalizers } };
  watches.ingresses.note(
    await client.request<IngressTls>('PATCH', ingressTlsPath(metadata.name), { body, type: MERGE_PATCH }),
  );
}

/** Writes what has changed, and tells of it; a status that says the same is not written. */
async function writeStatus(ingress: IngressTls, draft: Draft, deps: ReconcileDeps): Promise<void> {
  const before = (ingress.status ?? {}) as Status;
  const generation = ingress.metadata.generation ?? 0;
  const { fields, verdicts } = judge(before, draft);
  const conditions = nextConditions(
    before.conditions ?? [],
    verdicts,
    generation,
    new Date().toISOString().replace(/\.\d+/u, ''),
  );
  const after: Status = { ...fields, observedGeneration: generation, conditions };
  deps.events.statusIs({ name: ingress.metadata.name, status: after });
  if (sameStatus(before, after)) return;
  const body = { status: statusPatch(before, after) };
  const written = await deps.client.request<IngressTls>(
    'PATCH',
    ingressTlsPath(ingress.metadata.name, 'status'),
    {
      body,
      type: MERGE_PATCH,
    },
  );
  deps.watches.ingresses.note(written);
  await deps.recorder.statusChanged(ingress, before, after);
}
