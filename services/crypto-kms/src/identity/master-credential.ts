import { ColonnadeError } from '@colonnade/contracts';
import { looksLikeWorkloadToken } from '@colonnade/identity';
import type { MasterTokens } from '../master-token.ts';
import type { WorkloadTokens } from './workload-token.ts';

/**
 * Takes either credential of a master: the identity it enrolled for, or the token an admin made before there were
 * identities. Both reach the same.
 */
export function masterVerifier(
  issued: Pick<MasterTokens, 'verify'>,
  workloads: Pick<WorkloadTokens, 'verify'>,
): MasterTokens['verify'] {
  return async (token, master) => {
    if (!looksLikeWorkloadToken(token)) return issued.verify(token, master);
    const { workload, sid } = await workloads.verify(token);
    if (workload.kind !== 'master' || workload.master !== master || sid === undefined)
      throw new ColonnadeError('unauthorized', "the master's identity is another workload's");
    return { jti: sid };
  };
}
