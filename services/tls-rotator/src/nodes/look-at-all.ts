import type { KubeClient } from '../kube/client.ts';
import { type Allowed, isAllowedFile } from '../spec.ts';
import { findNodes, type NodeAddress, readSshAccess } from './find-nodes.ts';
import { lookAtNodes, type NodeLook } from './look.ts';
import { planFor } from './plan-node.ts';
import type { PlanJob } from './roller.ts';
import { type Access, type NodeSession, pathsOf } from './session.ts';

/**
 * Finds the nodes of a spec and looks at each.
 * @param namespace of the rotator
 * @throws ColonnadeError of `findNodes` and `readSshAccess`
 */
export async function lookAtAll(
  { client, allowed, namespace }: { client: KubeClient; allowed: Allowed; namespace: string },
  job: PlanJob,
  sessionOf: (node: NodeAddress) => NodeSession,
): Promise<NodeLook[]> {
  const { oidc } = job;
  const nodes = await findNodes(client, oidc, allowed);
  const ssh = await readSshAccess(client, oidc, namespace);
  const { ca, authorization } = await client.credentials();
  const access: Access = { ssh, paths: pathsOf(oidc), probe: { ...oidc.apiServer, ca, authorization } };
  return lookAtNodes(nodes.map(sessionOf), access, (seen) => planFor(job, seen), {
    isAllowedFile: (file) => isAllowedFile(file, allowed),
    reload: oidc.reload.enabled,
  });
}
