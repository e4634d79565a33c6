import { randomUUID } from 'node:crypto';
import {
  deriveGrantKey,
  GRANT_AUDIENCE,
  GRANT_LIFETIME_S,
  type GrantedEndpoint,
  grantResource,
  type Ungranted,
} from '@colonnade/contracts';
import { SignJWT } from 'jose';
import type { z } from 'zod';

/** A request to crypto-kms with a grant for exactly it. */
export type WithGrant = <Req extends z.ZodType>(
  endpoint: GrantedEndpoint<Req>,
  message: Ungranted<Req>,
) => Promise<Ungranted<Req> & { grant: string }>;

/**
 * Gives requests their single-use permission slips for crypto-kms, signed with a key derived from the user's token: each proves that
 * this user is here now and asks for this one thing.
 */
export function granter(holder: { token: string; tokenId: string; sub: string }): WithGrant {
  return async (endpoint, message) => {
    const { token, tokenId, sub } = holder;
    const key = deriveGrantKey(token);
    try {
      const grant = await new SignJWT({ act: endpoint.grant, res: grantResource(endpoint, message) })
        .setProtectedHeader({ alg: 'HS256', kid: tokenId })
        .setAudience(GRANT_AUDIENCE)
        .setSubject(sub)
        .setJti(randomUUID())
        .setIssuedAt()
        .setExpirationTime(`${GRANT_LIFETIME_S}s`)
        .sign(key);
      return { ...message, grant };
    } finally {
      key.fill(0);
    }
  };
}
