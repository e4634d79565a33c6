import type { KubeClient } from './kube/client.ts';
import { INGRESS_TLS_PATH, type KubeObject, type Namespace, RETRY, type Secret } from './kube/objects.ts';
import { type Reflector, type ReflectorWatcher, startReflector } from './kube/reflector.ts';
import type { NamespaceFacts } from './rules/namespaces.ts';
import { type TargetView, viewOf } from './secrets/target.ts';
import type { IngressTls } from './spec.ts';

/** Copies of what the rotator has to know of: IngressTLS, namespaces, and Secrets of certain names only. */
export type Watches = AsyncDisposable & {
  ingresses: Reflector<IngressTls>;
  namespaces: Reflector<NamespaceFacts>;
  /** The Secrets of one name in every namespace; watched from the first time they are asked for. */
  secretsNamed(name: string): Reflector<TargetView>;
  /** Ends watches of names that are used no more. */
  keepOnly(names: ReadonlySet<string>): Promise<void>;
};

export type WatchesOptions = {
  relistMs: number;
  silenceMs: number;
  watcher: ReflectorWatcher;
  onIngress: (name: string) => void;
  onNamespace: (name: string) => void;
  onSecret: (name: string, namespace: string) => void;
};

export function startWatches(client: KubeClient, options: WatchesOptions): Watches {
  const { relistMs, silenceMs, watcher } = options;
  const common = { relistMs, silenceMs, watcher };
  const secrets = new Map<string, Reflector<TargetView>>();
  const ingresses = startIngresses(client, common, options.onIngress);
  const namespaces = startReflector<NamespaceFacts>(client, {
    ...common,
    path: '/api/v1/namespaces',
    keep: (object) => ({
      name: object.metadata.name,
      terminating:
        object.metadata.deletionTimestamp !== undefined ||
        (object as Namespace).status?.phase === 'Terminating',
    }),
    onChange: options.onNamespace,
  });
  return {
    ingresses,
    namespaces,
    secretsNamed(name) {
      const there = secrets.get(name);
      if (there !== undefined) return there;
      const reflector = startReflector<TargetView>(client, {
        ...common,
        path: '/api/v1/secrets',
        fieldSelector: `metadata.name=${name}`,
        keep: (object) => viewOf(object as Secret),
        onChange: (key) => options.onSecret(name, key.split('/', 1)[0] as string),
      });
      secrets.set(name, reflector);
      return reflector;
    },
    async keepOnly(names) {
      const idle = [...secrets].filter(([name]) => !names.has(name));
      for (const [name] of idle) secrets.delete(name);
      await Promise.all(idle.map(([, reflector]) => reflector[Symbol.asyncDispose]()));
    },
    async [Symbol.asyncDispose]() {
      const all = [ingresses, namespaces, ...secrets.values()];
      await Promise.all(all.map((reflector) => reflector[Symbol.asyncDispose]()));
    },
  };
}

type Common = Pick<WatchesOptions, 'relistMs' | 'silenceMs' | 'watcher'>;

/** Our own changes of the status are no reason to look again. */
function startIngresses(
  client: KubeClient,
  common: Common,
  onIngress: (name: string) => void,
): Reflector<IngressTls> {
  const known = new Map<string, string>();
  const reflector: Reflector<IngressTls> = startReflector<IngressTls>(client, {
    ...common,
    path: INGRESS_TLS_PATH,
    keep: (object) => object as IngressTls,
    onChange: (name) => {
      const object = reflector.get(name);
      const sign = object === undefined ? '' : signOf(object);
      if (known.get(name) === sign) return;
      known.set(name, sign);
      onIngress(name);
    },
  });
  return reflector;
}

function signOf({ metadata }: KubeObject): string {
  const { uid, generation, deletionTimestamp, finalizers, annotations } = metadata;
  return JSON.stringify([uid, generation, deletionTimestamp, finalizers, annotations?.[RETRY]]);
}
