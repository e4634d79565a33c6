import { createHash } from 'node:crypto';
import { ColonnadeError, masterSubject, masterTokenRules, WORKLOAD_AUDIENCE } from '@colonnade/contracts';
import {
  createWorkloadVerifier,
  isCompactToken,
  type KeySet,
  looksLikeWorkloadToken,
} from '@colonnade/identity';
import { errors, jwtVerify } from 'jose';

/** Checks a master's token. @throws ColonnadeError `unauthorized`, `kms_unavailable` */
export type VerifyToken = (token: string, master: string) => Promise<{ tokenId: string }>;

type Verified = { master: string; tokenId: string; expiresAtMs: number; generation: number };

const MAX_REMEMBERED = 1000;

/**
 * A verifier for what crypto-kms signs for logical masters: the token an admin made, or the identity a host enrolled for,
 * whose `sid` stands among the master's tokens in place of a `jti`. A signature is checked once per token and key set;
 * expiry is checked every time, and whether the token was revoked is for the estate to say.
 */
export function createTokenVerifier(keys: KeySet, now: () => number = Date.now): VerifyToken {
  // By digest: the memory of this process should not be a list of tokens.
  const remembered = new Map<string, Verified>();
  const verifyWorkload = createWorkloadVerifier({ keys, audience: WORKLOAD_AUDIENCE, nowMs: now });
  return async (token, master) => {
    const digest = createHash('sha256').update(token).digest('base64');
    const known = remembered.get(digest);
    const isFresh =
      known !== undefined &&
      known.generation === keys.generation &&
      now() < known.expiresAtMs + masterTokenRules.clockTolerance * 1000;
    const verified = isFresh
      ? known
      : looksLikeWorkloadToken(token)
        ? await verifyIdentity(verifyWorkload, token, keys)
        : await verify(token, keys, now());
    if (!isFresh) {
      if (remembered.size >= MAX_REMEMBERED) remembered.clear();
      remembered.set(digest, verified);
    }
    if (verified.master !== masterSubject(master)) {
      throw new ColonnadeError('unauthorized', 'the token is of another master');
    }
    return { tokenId: verified.tokenId };
  };
}

async function verifyIdentity(
  verifyWorkload: ReturnType<typeof createWorkloadVerifier>,
  token: string,
  keys: KeySet,
): Promise<Verified> {
  const { workload, sid, expiresAtMs } = await verifyWorkload(token);
  if (workload.kind !== 'master' || sid === undefined)
    throw new ColonnadeError('unauthorized', 'the token is of no master');
  const master = masterSubject(workload.master);
  return { master, tokenId: sid, expiresAtMs, generation: keys.generation };
}

async function verify(token: string, keys: KeySet, nowMs: number): Promise<Verified> {
  if (!isCompactToken(token)) throw new ColonnadeError('unauthorized', 'the token is not valid: not a token');
  try {
    const { payload } = await jwtVerify(token, async ({ kid }) => await keyFor(keys, kid), {
      ...masterTokenRules,
      currentDate: new Date(nowMs),
    });
    return {
      master: String(payload.sub),
      tokenId: String(payload.jti),
      expiresAtMs: Number(payload.exp) * 1000,
      generation: keys.generation,
    };
  } catch (thrown) {
    if (thrown instanceof ColonnadeError) throw thrown;
    // The library's texts say which claim failed and never repeat the token.
    const reason = thrown instanceof errors.JOSEError ? thrown.code : 'not a token';
    throw new ColonnadeError('unauthorized', `the token is not valid: ${reason}`, { cause: thrown });
  }
}

async function keyFor(keys: KeySet, kid: string | undefined) {
  const key = kid === undefined ? undefined : await keys.find(kid);
  if (key === undefined) throw new ColonnadeError('unauthorized', 'the token is signed with an unknown key');
  return key.publicKey;
}
