import { createHash, randomUUID } from 'node:crypto';
import {
  BRIDGE_AUDIENCE,
  ColonnadeError,
  IDENTITY_ISSUER,
  MASTER_TOKEN_TYP,
  masterSubject,
  masterTokenRules,
} from '@colonnade/contracts';
import { explainRefusal, isCompactToken } from '@colonnade/identity';
import { jwtVerify, SignJWT } from 'jose';
import type { IdentityKeys } from './identity-keys.ts';
import type { Revocations } from './revocations.ts';

export type MasterTokens = {
  issue(master: string, lifetimeS: number): Promise<{ token: string; jti: string; expiresAtMs: number }>;
  /** Checks that a token is this master's. @throws ColonnadeError `unauthorized` */
  verify(token: string, master: string): Promise<{ jti: string }>;
};

type Claims = { sub: string; jti: string; exp: number };

const MAX_CACHED = 10_000;

/**
 * Identities of logical masters: EdDSA JWTs for the bridge. A verified token is remembered by its hash until it
 * expires; whether it is revoked is looked up each time.
 */
export function createMasterTokens(
  keys: IdentityKeys,
  revocations: Revocations,
  nowS: () => number,
): MasterTokens {
  const verified = new Map<string, Claims>();
  return {
    issue: (master, lifetimeS) => issue(keys, master, lifetimeS, nowS()),
    async verify(token, master) {
      const id = createHash('sha256').update(token).digest('base64');
      let claims = verified.get(id);
      if (claims === undefined) {
        claims = await verifySignature(keys, token, nowS());
        verified.set(id, claims);
        if (verified.size > MAX_CACHED) verified.delete(verified.keys().next().value as string);
      }
      if (claims.exp + masterTokenRules.clockTolerance <= nowS()) {
        verified.delete(id);
        throw refuse('has expired');
      }
      if (claims.sub !== masterSubject(master)) throw refuse("is another master's");
      if (revocations.isRevoked(claims.jti)) throw refuse('is revoked');
      return { jti: claims.jti };
    },
  };
}

async function issue(keys: IdentityKeys, master: string, lifetimeS: number, nowS: number) {
  const jti = randomUUID();
  const expS = nowS + lifetimeS;
  const token = await new SignJWT()
    .setProtectedHeader({ alg: 'EdDSA', typ: MASTER_TOKEN_TYP, kid: keys.active.kid })
    .setIssuer(IDENTITY_ISSUER)
    .setSubject(masterSubject(master))
    .setAudience(BRIDGE_AUDIENCE)
    .setIssuedAt(nowS)
    .setNotBefore(nowS)
    .setExpirationTime(expS)
    .setJti(jti)
    .sign(keys.active.privateKey);
  return { token, jti, expiresAtMs: expS * 1000 };
}

async function verifySignature(keys: IdentityKeys, token: string, nowS: number): Promise<Claims> {
  if (!isCompactToken(token)) throw refuse('is not a token of this service');
  const keyOf = ({ kid }: { kid?: string }) => {
    const key = keys.publicKey(kid);
    if (key === undefined) throw refuse('is signed with an unknown key');
    return key;
  };
  try {
    const { payload } = await jwtVerify(token, keyOf, {
      ...masterTokenRules,
      currentDate: new Date(nowS * 1000),
    });
    const { sub, jti, exp } = payload;
    // What stands in a token may be anything, whatever the library's types say.
    if (typeof sub !== 'string' || typeof jti !== 'string' || exp === undefined)
      throw refuse('lacks a claim');
    return { sub, jti, exp };
  } catch (thrown) {
    throw explainRefusal(thrown, "the master's token", 'is not a token of this service');
  }
}

function refuse(why: string): ColonnadeError {
  return new ColonnadeError('unauthorized', `the master's token ${why}`);
}
