import { randomUUID } from 'node:crypto';
import { deriveGrantKey, GRANT_AUDIENCE, GRANT_LIFETIME_S, type GrantAct } from '@colonnade/contracts';
import { SignJWT } from 'jose';

export type MakeGrant = (act: GrantAct, res: string) => Promise<string>;

/**
 * A single-use permission slip for crypto-kms, signed with a key derived from the user's token: it proves that this
 * user is here now and asks for this one act on this one thing.
 */
export async function makeGrant(options: {
  token: string;
  tokenId: string;
  sub: string;
  act: GrantAct;
  res: string;
}): Promise<string> {
  const { token, tokenId, sub, act, res } = options;
  const key = deriveGrantKey(token);
  try {
    return await new SignJWT({ act, res })
      .setProtectedHeader({ alg: 'HS256', kid: tokenId })
      .setAudience(GRANT_AUDIENCE)
      .setSubject(sub)
      .setJti(randomUUID())
      .setIssuedAt()
      .setExpirationTime(`${GRANT_LIFETIME_S}s`)
      .sign(key);
  } finally {
    key.fill(0);
  }
}
