/** The parts of Kubernetes objects that are used here. */
export type ObjectMeta = {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  finalizers?: readonly string[];
  annotations?: Readonly<Record<string, string>>;
  labels?: Readonly<Record<string, string>>;
};

export type KubeObject = { kind?: string; apiVersion?: string; metadata: ObjectMeta };
export type Secret = KubeObject & {
  type?: string;
  immutable?: boolean;
  data?: Readonly<Record<string, string>>;
};
export type Namespace = KubeObject & { status?: { phase?: string } };
export type KubeNode = KubeObject & { status?: { addresses?: readonly { type: string; address: string }[] } };
export type KubeList<T> = { metadata: { resourceVersion: string; continue?: string }; items: readonly T[] };

export const GROUP = 'tls.dropapp.ru';
export const VERSION = 'v1alpha1';
export const INGRESS_TLS_PATH = `/apis/${GROUP}/${VERSION}/ingresstlses`;
/** On Secrets we made: the UID of the IngressTLS they were made for. */
export const CREATED_FOR = `${GROUP}/created-for`;
export const FINALIZER = `${GROUP}/finish`;
/** A change of it lets a rollout that stopped begin again. */
export const RETRY = `${GROUP}/retry`;

export function secretPath(namespace: string, name?: string): string {
  const base = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  return name === undefined ? base : `${base}/${encodeURIComponent(name)}`;
}

export function ingressTlsPath(name: string, subresource?: 'status'): string {
  const base = `${INGRESS_TLS_PATH}/${encodeURIComponent(name)}`;
  return subresource === undefined ? base : `${base}/${subresource}`;
}
