import { toColonnadeError } from '@colonnade/contracts';
import { type KubeClient, MERGE_PATCH } from '../kube/client.ts';
import { CREATED_FOR, type Secret, secretPath } from '../kube/objects.ts';
import { dataHash, type TargetData, type TargetView, viewOf } from './target.ts';

export type WriteJob = {
  namespace: string;
  secretName: string;
  data: TargetData;
  /** What was seen last; undefined: nothing is there. */
  seen: TargetView | undefined;
  createIfMissing: boolean;
  /** UID of the IngressTLS. */
  owner: string;
};

export type WriteResult =
  | { outcome: 'unchanged' | 'missing' }
  | { outcome: 'updated' | 'created'; secret: Secret }
  | { outcome: 'failed'; reason: string };

/** A write that finds another version is tried again with what is there then. */
const TRIES = 4;

/**
 * Brings one Secret to the source's fields (seed 004). Of one that is there only `tls.crt` and `tls.key` change, and only
 * if nobody changed it since it was looked at. Never throws what one Secret alone is to blame for.
 * @throws ColonnadeError `unavailable`, `rate_limited`, `unauthorized`: the API server is to blame
 */
export async function writeTarget(client: KubeClient, job: WriteJob): Promise<WriteResult> {
  const wanted = dataHash(job.data);
  let { seen } = job;
  for (let tries = 1; ; tries += 1) {
    if (seen?.hash === wanted) return { outcome: 'unchanged' };
    if (seen?.immutable) return { outcome: 'failed', reason: 'the Secret is immutable' };
    if (seen === undefined && !job.createIfMissing) return { outcome: 'missing' };
    try {
      return seen === undefined ? await create(client, job) : await patch(client, job, seen);
    } catch (thrown) {
      const error = toColonnadeError(thrown);
      if (error.retryable || error.code === 'unauthorized' || error.code === 'internal') throw error;
      if ((error.code !== 'conflict' && error.code !== 'not_found') || tries === TRIES)
        return { outcome: 'failed', reason: error.message };
      if (error.code === 'not_found' && seen === undefined)
        return { outcome: 'failed', reason: 'the namespace is gone' };
    }
    seen = await look(client, job);
  }
}

async function create(
  client: KubeClient,
  { namespace, secretName, data, owner }: WriteJob,
): Promise<WriteResult> {
  const body = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { name: secretName, namespace, annotations: { [CREATED_FOR]: owner } },
    data,
  };
  const secret = await client.request<Secret>('POST', secretPath(namespace), { body });
  return { outcome: 'created', secret };
}

async function patch(client: KubeClient, job: WriteJob, seen: TargetView): Promise<WriteResult> {
  const body = { metadata: { resourceVersion: seen.resourceVersion }, data: job.data };
  const path = secretPath(job.namespace, job.secretName);
  const secret = await client.request<Secret>('PATCH', path, { body, type: MERGE_PATCH });
  return { outcome: 'updated', secret };
}

async function look(
  client: KubeClient,
  { namespace, secretName }: WriteJob,
): Promise<TargetView | undefined> {
  try {
    return viewOf(await client.request<Secret>('GET', secretPath(namespace, secretName)));
  } catch (thrown) {
    if (toColonnadeError(thrown).code === 'not_found') return undefined;
    throw thrown;
  }
}

/**
 * Deletes a Secret that was made for this IngressTLS, if it is still the one that was seen. One that others made, or
 * that was made anew meanwhile, is not touched.
 * @returns whether it went
 */
export async function deleteOurs(
  client: KubeClient,
  {
    namespace,
    secretName,
    seen,
    owner,
  }: { namespace: string; secretName: string; seen: TargetView; owner: string },
): Promise<boolean> {
  if (seen.createdFor !== owner) return false;
  const preconditions = { uid: seen.uid, resourceVersion: seen.resourceVersion };
  try {
    await client.request('DELETE', secretPath(namespace, secretName), { body: { preconditions } });
    return true;
  } catch (thrown) {
    if (toColonnadeError(thrown).code === 'not_found') return false;
    throw thrown;
  }
}
