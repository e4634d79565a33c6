import { JWKS_KEEP_S, toColonnadeError, WORKLOAD_ALGORITHMS } from '@colonnade/contracts';
import type { KeySet } from '@colonnade/identity';
import type { OpsAnswer, OpsRoute } from '@colonnade/service-kit';

/** OpenID Connect Discovery 1.0 and RFC 7517, open to all: for whoever verifies identities and knows only the issuer. */
export function discoveryRoutes(keys: KeySet): readonly OpsRoute[] {
  return [
    {
      path: '/.well-known/openid-configuration',
      answer: () =>
        publicly(async () => {
          const { issuer } = await keys.published();
          return {
            issuer,
            jwks_uri: `${issuer}/.well-known/jwks.json`,
            response_types_supported: ['id_token'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: [...WORKLOAD_ALGORITHMS],
            claims_supported: ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sid', 'gen', 'colonnade'],
          };
        }, 'application/json'),
    },
    {
      path: '/.well-known/jwks.json',
      answer: () =>
        publicly(async () => ({ keys: (await keys.published()).keys }), 'application/jwk-set+json'),
    },
  ];
}

async function publicly(read: () => Promise<object>, contentType: string): Promise<OpsAnswer> {
  try {
    const headers = { 'cache-control': `public, max-age=${JWKS_KEEP_S}` };
    return { status: 200, contentType, body: JSON.stringify(await read()), headers };
  } catch (thrown) {
    const { code } = toColonnadeError(thrown);
    return { status: 503, contentType: 'application/json', body: JSON.stringify({ code }) };
  }
}
