import { ColonnadeError, LIMITS, zUserSub } from '@colonnade/contracts';
import { isCompactToken } from '@colonnade/identity';
import { errors, type JWTPayload, jwtVerify } from 'jose';
import { createIssuerKeys, type IssuerKeys, isSafeUrl, unavailable } from './oidc-discovery.ts';
import { type GroupRole, groupsOf, type Held, rolesOfGroups } from './oidc-roles.ts';

/** Signatures with a private key only: a shared secret or none at all is no proof of the issuer. */
export const OIDC_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
] as const;

export type OidcOptions = {
  issuer: string;
  audience: string;
  algorithms: readonly string[];
  subClaim: string;
  groupsClaim: string;
  groupRoles: readonly GroupRole[];
  /** A token older than this is refused, whatever its `exp`; so long may a revoked one work. */
  maxAgeS: number;
};

/** Who a token of the issuer's belongs to. */
export type OidcIdentity = Held & { sub: string; jti: string | undefined; issuedAtMs: number };

export type Oidc = {
  maxAgeS: number;
  /** @throws ColonnadeError `unauthorized` | `unavailable` (the issuer's keys cannot be had) */
  verify(token: string, nowMs: number): Promise<OidcIdentity>;
};

/** Seconds by which the clocks of two hosts may differ. */
const CLOCK_TOLERANCE_S = 30;

/** A JSON Web Token by its form; whether it is one, `verify` says. */
export function looksLikeJwt(token: string): boolean {
  return token.length <= LIMITS.oidcTokenChars && /^[\w-]+\.[\w-]+\.[\w-]*$/u.test(token);
}

/** Bearer tokens of one OpenID Connect issuer. @throws ColonnadeError `misconfigured` */
export function createOidc(options: OidcOptions, keys: IssuerKeys = createIssuerKeys(options.issuer)): Oidc {
  if (!isSafeUrl(options.issuer)) {
    throw new ColonnadeError('misconfigured', 'OIDC_ISSUER: must be https, or http of this host itself');
  }
  return {
    maxAgeS: options.maxAgeS,
    async verify(token, nowMs) {
      if (!isCompactToken(token)) throw refuse('not well formed');
      const getKey = await keys.get();
      try {
        const { payload } = await jwtVerify(token, getKey, {
          issuer: options.issuer,
          audience: options.audience,
          algorithms: [...options.algorithms],
          requiredClaims: ['exp', 'iat', options.subClaim],
          clockTolerance: CLOCK_TOLERANCE_S,
          maxTokenAge: options.maxAgeS,
          currentDate: new Date(nowMs),
        });
        return identityOf(options, payload);
      } catch (thrown) {
        throw toRefusal(thrown);
      }
    },
  };
}

function identityOf(options: OidcOptions, payload: JWTPayload): OidcIdentity {
  const sub = zUserSub.safeParse(payload[options.subClaim]);
  if (!sub.success) throw refuse(`its claim "${options.subClaim}" is no user of ours`);
  const held = rolesOfGroups(options.groupRoles, groupsOf(payload, options.groupsClaim));
  const jti = typeof payload.jti === 'string' ? payload.jti : undefined;
  return { ...held, sub: sub.data, jti, issuedAtMs: (payload.iat ?? 0) * 1000 };
}

/** Total. What the token is wrong about is told: it is the sender's own, and says nothing of ours. */
function toRefusal(thrown: unknown): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  if (thrown instanceof errors.JWTExpired) return refuse('it has expired');
  if (thrown instanceof errors.JWTClaimValidationFailed) return refuse(`wrong or missing "${thrown.claim}"`);
  if (thrown instanceof errors.JOSEAlgNotAllowed)
    return refuse('signed with an algorithm that is not allowed');
  if (thrown instanceof errors.JWKSNoMatchingKey) return refuse('signed with a key the issuer does not have');
  if (thrown instanceof errors.JWKSMultipleMatchingKeys) return refuse('its header does not say which key');
  if (thrown instanceof errors.JWSSignatureVerificationFailed) return refuse('its signature is wrong');
  if (thrown instanceof errors.JWKSTimeout || thrown instanceof errors.JWKSInvalid)
    return unavailable(thrown);
  if (thrown instanceof errors.JWTInvalid || thrown instanceof errors.JWSInvalid)
    return refuse('not well formed');
  if (thrown instanceof errors.JOSENotSupported) return refuse('it uses what is not supported');
  return unavailable(thrown);
}

function refuse(why: string): ColonnadeError {
  return new ColonnadeError('unauthorized', `the bearer token is refused: ${why}`);
}
