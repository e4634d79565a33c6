import { isIP } from 'node:net';
import { ColonnadeError, toColonnadeError } from '@colonnade/contracts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeList, type KubeNode, type Secret, secretPath } from '../kube/objects.ts';
import { parseKnownHosts } from '../rules/known-hosts.ts';
import { type Allowed, type OidcSpec, requireAddress } from '../spec.ts';
import type { SshTarget } from './ssh.ts';

export type NodeAddress = { name: string; address: string };

/**
 * The nodes of a spec, sorted by name: those listed, or those with the labels, at their internal addresses.
 * @throws ColonnadeError `not_found`: there is none; `forbidden`: the rotator's settings do not allow one of them
 */
export async function findNodes(
  client: KubeClient,
  { nodes }: OidcSpec,
  allowed: Allowed,
): Promise<NodeAddress[]> {
  const found = nodes.list ?? (await labelled(client, nodes.matchLabels ?? {}));
  if (found.length === 0)
    throw new ColonnadeError('not_found', 'no node has the labels of spec.apiServerOIDC.nodes');
  for (const { address } of found) requireAddress(address, allowed);
  return [...found].sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function labelled(
  client: KubeClient,
  labels: Readonly<Record<string, string>>,
): Promise<NodeAddress[]> {
  const labelSelector = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  const { items } = await client.request<KubeList<KubeNode>>('GET', '/api/v1/nodes', {
    query: { labelSelector },
  });
  return items.map(({ metadata, status }) => {
    const internal = status?.addresses?.find(
      ({ type, address }) => type === 'InternalIP' && isIP(address) !== 0,
    );
    if (internal === undefined)
      throw new ColonnadeError('unprocessable', `node ${metadata.name} has no InternalIP`);
    return { name: metadata.name, address: internal.address };
  });
}

/**
 * How the nodes are reached: key and pinned host keys stand in the rotator's own namespace.
 * @throws ColonnadeError `not_found`: a Secret or its key is missing, with the command that makes it
 */
export async function readSshAccess(
  client: KubeClient,
  { ssh }: OidcSpec,
  namespace: string,
): Promise<Omit<SshTarget, 'host'>> {
  if (ssh === undefined) throw new ColonnadeError('unprocessable', 'spec.apiServerOIDC.ssh is missing');
  const { keySecretRef: key, knownHostsSecretRef: hosts } = ssh;
  const create = (name: string, field: string) =>
    `kubectl -n ${namespace} create secret generic ${name} --from-file=${field}=FILE`;
  const privateKey = await readField(client, namespace, key, create(key.name, key.key));
  const known = await readField(
    client,
    namespace,
    hosts,
    `ssh-keyscan -p ${ssh.port} NODES > FILE, compare it, then ${create(hosts.name, hosts.key)}`,
  );
  return { port: ssh.port, user: ssh.user, privateKey, knownHosts: parseKnownHosts(known) };
}

async function readField(
  client: KubeClient,
  namespace: string,
  { name, key }: { name: string; key: string },
  command: string,
): Promise<string> {
  const secret = await client.request<Secret>('GET', secretPath(namespace, name)).catch((thrown) => {
    const error = toColonnadeError(thrown);
    if (error.code === 'not_found') return undefined;
    throw error;
  });
  const encoded = secret?.data?.[key];
  if (encoded) return Buffer.from(encoded, 'base64').toString('utf8');
  throw new ColonnadeError(
    'not_found',
    `there is no ${key} in the Secret ${namespace}/${name}; make it with: ${command}`,
  );
}
