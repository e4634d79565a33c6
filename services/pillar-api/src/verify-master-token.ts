import { type Call, ColonnadeError, masterTokenRules } from '@colonnade/contracts';
import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from 'jose';
import type { Kms } from './kms.ts';

/**
 * Verifies master tokens with the KMS's public keys; asks for them again when a token names a key that is not known.
 * @throws ColonnadeError `unauthorized`, `kms_unavailable`
 */
export function createTokenVerifier(
  kms: Pick<Kms, 'jwks'>,
): (token: string, call: Call) => Promise<JWTPayload> {
  let keys: ReturnType<typeof createLocalJWKSet> | undefined;
  const load = async (call: Call) => {
    keys = createLocalJWKSet({ keys: await kms.jwks(call) });
    return keys;
  };
  return async (token, call) => {
    try {
      const known = keys ?? (await load(call));
      const verified = await jwtVerify(token, known, masterTokenRules).catch(async (thrown) => {
        if (!(thrown instanceof errors.JWKSNoMatchingKey)) throw thrown;
        return jwtVerify(token, await load(call), masterTokenRules);
      });
      return verified.payload;
    } catch (thrown) {
      if (thrown instanceof errors.JOSEError) {
        throw new ColonnadeError('unauthorized', 'the token of the master is not valid', { cause: thrown });
      }
      throw thrown;
    }
  };
}
