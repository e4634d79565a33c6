import { posix } from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';
import { z } from 'zod';
import type { KubeObject } from './kube/objects.ts';

/** Names as Kubernetes has them; the CRD says the same, for those who apply. */
const zName = z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/u);
const zNamespace = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/u);
const zDataKey = z.string().regex(/^[-._a-zA-Z0-9]{1,253}$/u);
/** Absolute, plain characters, no `..`: such a path means itself wherever it is written. */
const zNodePath = z
  .string()
  .max(512)
  .regex(/^(\/[A-Za-z0-9_][A-Za-z0-9._-]*)+$/u);
const zHost = z.string().regex(/^[A-Za-z0-9]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?$/u);
const zUser = z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/u);
const zPort = z.int().min(1).max(65_535);
const zSeconds = (min: number, max: number) => z.int().min(min).max(max);
const zKeyRef = (key: string) => z.strictObject({ name: zName, key: zDataKey.default(key) });

const zNodes = z
  .strictObject({
    matchLabels: z.record(z.string(), z.string()).optional(),
    list: z
      .array(z.strictObject({ name: zName, address: zHost }))
      .min(1)
      .max(32)
      .optional(),
  })
  .refine(
    ({ matchLabels, list }) => (matchLabels === undefined) !== (list === undefined),
    'either matchLabels or list',
  );

const zRestart = z.strictObject({
  manifestPath: zNodePath.default('/etc/kubernetes/manifests/kube-apiserver.yaml'),
  minimumWaitSeconds: zSeconds(0, 600).default(20),
  stopTimeoutSeconds: zSeconds(1, 600).default(120),
  readyTimeoutSeconds: zSeconds(1, 1800).default(300),
  allowDowntime: z.boolean().default(false),
});

const zReload = z
  .strictObject({
    enabled: z.boolean().default(false),
    configPath: zNodePath.default('/etc/kubernetes/authentication-config.yaml'),
    issuerURL: z
      .string()
      .max(512)
      .regex(/^https:\/\/[^\s]+$/u)
      .optional(),
    timeoutSeconds: zSeconds(1, 1800).default(180),
    restartWithoutMetric: z.boolean().default(false),
  })
  .refine(({ enabled, issuerURL }) => !enabled || issuerURL !== undefined, 'enabled needs issuerURL');

const zOidc = z
  .strictObject({
    enabled: z.boolean().default(false),
    caKey: zDataKey.default('ca.crt'),
    destCAPath: zNodePath.default('/etc/kubernetes/pki/ingress-ca.crt'),
    writeKey: z
      .strictObject({
        enabled: z.boolean().default(false),
        key: zDataKey.default('ca.key'),
        path: zNodePath.default('/etc/kubernetes/pki/ingress-ca.key'),
      })
      .prefault({}),
    dropOldCAAfterSeconds: zSeconds(0, 31_536_000).default(86_400),
    nodes: zNodes.prefault({ matchLabels: { 'node-role.kubernetes.io/control-plane': '' } }),
    ssh: z
      .strictObject({
        user: zUser.default('root'),
        port: zPort.default(22),
        keySecretRef: zKeyRef('ssh-privatekey'),
        knownHostsSecretRef: zKeyRef('known_hosts'),
      })
      .optional(),
    apiServer: z
      .strictObject({ port: zPort.default(6443), serverName: zHost.default('kubernetes.default.svc') })
      .prefault({}),
    restart: zRestart.prefault({}),
    reload: zReload.prefault({}),
  })
  .refine(({ enabled, ssh }) => !enabled || ssh !== undefined, 'enabled needs ssh');

const zSpec = z.strictObject({
  sourceSecretRef: z.strictObject({ namespace: zNamespace, name: zName }),
  secretName: zName.default('ingress-tls'),
  namespaces: z
    .array(z.union([z.literal('*'), zNamespace]))
    .min(1)
    .max(1024),
  createIfMissing: z.boolean().default(false),
  deletionPolicy: z.enum(['Retain', 'Delete']).default('Retain'),
  paused: z.boolean().default(false),
  apiServerOIDC: zOidc.prefault({}),
});

export type Spec = z.infer<typeof zSpec>;
export type OidcSpec = Spec['apiServerOIDC'];
export type IngressTls = KubeObject & { spec: unknown; status?: unknown };

/** What the operator of the rotator allows any IngressTLS: one is as powerful as root on the control plane. */
export type Allowed = {
  sourceNamespaces: readonly string[];
  pathPrefixes: readonly string[];
  nodeAddresses: { check(address: string): boolean };
};

/**
 * Reads the spec, with its defaults (seed 004), and holds it against what the rotator's own configuration allows.
 * @throws ColonnadeError `unprocessable`, `forbidden`: what is refused and which setting would allow it
 */
export function readSpec(object: IngressTls, allowed: Allowed): Spec {
  const spec = parseSpec(object);
  const { namespace } = spec.sourceSecretRef;
  if (!allowed.sourceNamespaces.includes(namespace))
    throw new ColonnadeError('forbidden', `ALLOWED_SOURCE_NAMESPACES does not list ${namespace}`);
  if (spec.apiServerOIDC.enabled) requireNodeWork(spec.apiServerOIDC, allowed);
  return spec;
}

/**
 * The spec with its defaults, allowed or not.
 * @throws ColonnadeError `unprocessable`
 */
export function parseSpec(object: IngressTls): Spec {
  const result = zSpec.safeParse(object.spec);
  if (!result.success) {
    const faults = result.error.issues
      .slice(0, 10)
      .map(({ path, message }) => `spec.${path.join('.')}: ${message}`);
    throw new ColonnadeError('unprocessable', faults.join('; '));
  }
  return result.data;
}

/**
 * Whether nodes may be worked on in this way.
 * @throws ColonnadeError `unprocessable`, `forbidden`
 */
export function requireNodeWork(oidc: OidcSpec, allowed: Allowed): void {
  const { writeKey, restart, nodes } = oidc;
  const file = caFileOf(oidc);
  const written = writeKey.enabled ? [file, writeKey.path] : [file];
  for (const path of [...written, restart.manifestPath]) requirePath(path, allowed);
  if (writeKey.enabled && writeKey.path === file)
    throw new ColonnadeError('unprocessable', 'spec.apiServerOIDC.writeKey.path is the file of the CA');
  for (const path of written) requireApart(path, restart.manifestPath);
  for (const { address } of nodes.list ?? []) requireAddress(address, allowed);
}

/** What the kubelet reads it runs as root, and what we keep on a node is ours alone. */
function requireApart(path: string, manifestPath: string): void {
  const manifests = posix.dirname(manifestPath);
  const ours = posix.join(posix.dirname(manifests), 'colonnade-tls');
  if (![manifests, ours].some((folder) => path.startsWith(`${folder}/`))) return;
  throw new ColonnadeError(
    'unprocessable',
    `spec.apiServerOIDC: ${path} is in the folder of the manifest or in ours, where nothing else is written`,
  );
}

/** The file of a node that holds the CA: a bundle, or a configuration with the bundle in it. */
export function caFileOf({ destCAPath, reload }: OidcSpec): string {
  return reload.enabled ? reload.configPath : destCAPath;
}

/** A path that a node's own journal names. */
export function isAllowedFile(path: string, { pathPrefixes }: Allowed): boolean {
  return zNodePath.safeParse(path).success && pathPrefixes.some((prefix) => path.startsWith(prefix));
}

function requirePath(path: string, { pathPrefixes }: Allowed): void {
  if (pathPrefixes.some((prefix) => path.startsWith(prefix))) return;
  throw new ColonnadeError('forbidden', `ALLOWED_NODE_PATHS does not allow ${path}`);
}

/** @throws ColonnadeError `forbidden` */
export function requireAddress(address: string, { nodeAddresses }: Allowed): void {
  if (nodeAddresses.check(address)) return;
  throw new ColonnadeError('forbidden', `ALLOWED_NODE_ADDRESSES does not allow ${address}`);
}
