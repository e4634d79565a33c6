import { ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import { createKeyedQueue, type KeyedQueue } from './kube/queue.ts';
import { type ReconcileDeps, reconcile } from './reconcile.ts';
import { backoffMs } from './rules/backoff.ts';
import { type IngressTls, readSpec, type Spec } from './spec.ts';
import { startWatches, type Watches } from './watches.ts';

export type ControllerDeps = Omit<ReconcileDeps, 'watches' | 'stop'> & { silenceMs: number };

export type Controller = AsyncDisposable & {
  /** Everything is looked at: we have become the leader. */
  kick(): void;
  isSynced(): boolean;
  watches: Watches;
};

/** Passes at the same time; those of one IngressTLS never. */
const WORKERS = 4;

/** Watches what an IngressTLS depends on, and runs one pass after the other over each. */
export function startController(deps: ControllerDeps): Controller {
  const { client, events, resyncMs, silenceMs } = deps;
  const failures = new Map<string, number>();
  const queue: KeyedQueue = createKeyedQueue((name, stop) => runPass(name, stop), { workers: WORKERS });
  const all = () => [...watches.ingresses.entries()].map(([, ingress]) => ingress);
  const specs = () => all().flatMap((ingress) => specOf(ingress, deps) ?? []);
  const watches: Watches = startWatches(client, {
    relistMs: resyncMs,
    silenceMs,
    watcher: events,
    onIngress(name) {
      // A claim that comes or goes changes what others may write.
      for (const { metadata } of all()) queue.add(metadata.name);
      if (watches.ingresses.get(name) === undefined) events.gone(name);
    },
    onNamespace(namespace) {
      for (const { name, spec } of specs()) if (selects(spec, namespace)) queue.add(name);
    },
    onSecret(secretName, namespace) {
      for (const { name, spec } of specs()) if (concerns(spec, secretName, namespace)) queue.add(name);
    },
  });

  const runPass = async (name: string, stop: AbortSignal) => {
    const startMs = performance.now();
    try {
      await watchNames(
        watches,
        specs().map(({ spec }) => spec),
      );
      const againMs = await reconcile(name, { ...deps, watches, stop });
      failures.delete(name);
      if (watches.ingresses.get(name) !== undefined) queue.addAfter(name, againMs);
    } catch (thrown) {
      const error = describe(thrown);
      const tries = (failures.get(name) ?? 0) + 1;
      failures.set(name, tries);
      // Somebody changed the object meanwhile; the watch has or will have it.
      if (error.code !== 'conflict') events.passFailed({ name, error });
      queue.addAfter(
        name,
        backoffMs(tries, { firstMs: error.code === 'conflict' ? 50 : 500, maxMs: 60_000 }),
      );
    }
    events.passTimed(performance.now() - startMs);
  };

  return {
    kick() {
      for (const { metadata } of all()) queue.add(metadata.name);
    },
    watches,
    isSynced: () => watches.ingresses.isSynced() && watches.namespaces.isSynced(),
    async [Symbol.asyncDispose]() {
      await queue[Symbol.asyncDispose]();
      await watches[Symbol.asyncDispose]();
    },
  };
}

function describe(thrown: unknown): ColonnadeError {
  return thrown instanceof ColonnadeError ? thrown : toColonnadeError(thrown);
}

/** Secrets of the names in use are watched, and no others. */
async function watchNames(watches: Watches, specs: readonly Spec[]): Promise<void> {
  const names = new Set(specs.flatMap((spec) => [spec.secretName, spec.sourceSecretRef.name]));
  for (const name of names) watches.secretsNamed(name);
  await watches.keepOnly(names);
}

function specOf(ingress: IngressTls, { allowed }: ControllerDeps): { name: string; spec: Spec } | undefined {
  try {
    return { name: ingress.metadata.name, spec: readSpec(ingress, allowed) };
  } catch {
    return undefined;
  }
}

function selects({ namespaces }: Spec, namespace: string): boolean {
  return namespaces.includes('*') || namespaces.includes(namespace);
}

function concerns(spec: Spec, secretName: string, namespace: string): boolean {
  const { sourceSecretRef: source } = spec;
  if (source.name === secretName && source.namespace === namespace) return true;
  return spec.secretName === secretName && selects(spec, namespace);
}
