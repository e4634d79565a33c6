import { createHash } from 'node:crypto';
import { ColonnadeError, masterSubject, masterTokenRules, WORKLOAD_AUDIENCE } from '@colonnade/contracts';
import {
  createWorkloadVerifier,
  isCompactToken,
  type KeySet,
  looksLikeWorkloadToken,
  type VerifyKey,
} from '@colonnade/identity';
import { errors, jwtVerify } from 'jose';

/** Checks a master's token. @throws ColonnadeError `unauthorized`, `kms_unavailable` */
export type VerifyToken = (token: string, master: string) => Promise<{ tokenId: string }>;

type OfMaster = { master: string; tokenId: string };
type Verified = OfMaster & { expiresAtMs: number; kid: string; publicKey: VerifyKey['publicKey'] };

const MAX_REMEMBERED = 1000;

/**
 * A verifier for what crypto-kms signs for logical masters: the token an admin made, or the identity a host enrolled for,
 * whose `sid` stands among the master's tokens in place of a `jti`. A signature is checked once; that its key is there and its time not
 * over every time, and whether the token was revoked is for the estate to say.
 */
export function createTokenVerifier(keys: KeySet, now: () => number = Date.now): VerifyToken {
  const verifyWorkload = createWorkloadVerifier({ keys, audience: WORKLOAD_AUDIENCE, nowMs: now });
  const verifyMade = createMadeVerifier(keys, now);
  return async (token, master) => {
    const verified = looksLikeWorkloadToken(token)
      ? await verifyIdentity(verifyWorkload, token)
      : await verifyMade(token);
    if (verified.master !== masterSubject(master)) {
      throw new ColonnadeError('unauthorized', 'the token is of another master');
    }
    return { tokenId: verified.tokenId };
  };
}

async function verifyIdentity(
  verifyWorkload: ReturnType<typeof createWorkloadVerifier>,
  token: string,
): Promise<OfMaster> {
  const { workload, sid } = await verifyWorkload(token);
  if (workload.kind !== 'master' || sid === undefined)
    throw new ColonnadeError('unauthorized', 'the token is of no master');
  return { master: masterSubject(workload.master), tokenId: sid };
}

/** For tokens that an admin made. */
function createMadeVerifier(keys: KeySet, now: () => number): (token: string) => Promise<OfMaster> {
  // By digest: the memory of this process should not be a list of tokens.
  const remembered = new Map<string, Verified>();
  return async (token) => {
    const digest = createHash('sha256').update(token).digest('base64');
    const known = remembered.get(digest);
    const isFresh =
      known !== undefined &&
      now() < known.expiresAtMs + masterTokenRules.clockTolerance * 1000 &&
      (await keys.findOfMasters(known.kid))?.publicKey === known.publicKey;
    if (isFresh) return known;
    const verified = await verify(token, keys, now());
    if (remembered.size >= MAX_REMEMBERED) remembered.clear();
    remembered.set(digest, verified);
    return verified;
  };
}

async function verify(token: string, keys: KeySet, nowMs: number): Promise<Verified> {
  if (!isCompactToken(token)) throw new ColonnadeError('unauthorized', 'the token is not valid: not a token');
  let used: Pick<Verified, 'kid' | 'publicKey'> | undefined;
  const keyFor = async ({ kid }: { kid?: string }) => {
    const key = await keys.findOfMasters(kid);
    if (kid === undefined || key === undefined)
      throw new ColonnadeError('unauthorized', 'the token is signed with an unknown key');
    used = { kid, publicKey: key.publicKey };
    return key.publicKey;
  };
  try {
    const { payload } = await jwtVerify(token, keyFor, {
      ...masterTokenRules,
      currentDate: new Date(nowMs),
    });
    if (used === undefined) throw new ColonnadeError('internal', 'a token was verified without a key');
    return {
      ...(used as Pick<Verified, 'kid' | 'publicKey'>),
      master: String(payload.sub),
      tokenId: String(payload.jti),
      expiresAtMs: Number(payload.exp) * 1000,
    };
  } catch (thrown) {
    if (thrown instanceof ColonnadeError) throw thrown;
    // The library's texts say which claim failed and never repeat the token.
    const reason = thrown instanceof errors.JOSEError ? thrown.code : 'not a token';
    throw new ColonnadeError('unauthorized', `the token is not valid: ${reason}`, { cause: thrown });
  }
}
