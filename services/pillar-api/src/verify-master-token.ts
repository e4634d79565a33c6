import { ColonnadeError, masterSubject, masterTokenRules, WORKLOAD_AUDIENCE } from '@colonnade/contracts';
import {
  createWorkloadVerifier,
  isCompactToken,
  type KeySet,
  looksLikeWorkloadToken,
} from '@colonnade/identity';
import { errors, jwtVerify } from 'jose';

/** Of a master's credential: whose it is, and the id that stands among the master's tokens. */
export type MasterClaims = { sub: string; tokenId: string };

/**
 * Verifies what a master comes with: the token an admin made, or the identity it enrolled for. Keys are asked for again
 * when one is not known.
 * @throws ColonnadeError `unauthorized`, `kms_unavailable`
 */
export function createTokenVerifier(keys: KeySet): (token: string) => Promise<MasterClaims> {
  const verifyWorkload = createWorkloadVerifier({ keys, audience: WORKLOAD_AUDIENCE });
  return async (token) => {
    if (looksLikeWorkloadToken(token)) {
      const { workload, sid } = await verifyWorkload(token);
      if (workload.kind !== 'master' || sid === undefined) throw refuse();
      return { sub: masterSubject(workload.master), tokenId: sid };
    }
    if (!isCompactToken(token)) throw refuse();
    try {
      const { payload } = await jwtVerify(
        token,
        ({ kid }: { kid?: string }) => keyOf(keys, kid),
        masterTokenRules,
      );
      return { sub: String(payload.sub), tokenId: String(payload.jti) };
    } catch (thrown) {
      throw thrown instanceof errors.JOSEError ? refuse(thrown) : thrown;
    }
  };
}

async function keyOf(keys: KeySet, kid: string | undefined) {
  const key = await keys.findOfMasters(kid);
  if (key === undefined) throw refuse();
  return key.publicKey;
}

function refuse(cause?: unknown): ColonnadeError {
  return new ColonnadeError('unauthorized', 'the token of the master is not valid', { cause });
}
