import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** An OpenID Connect issuer over TLS, as an API server needs it: discovery and keys. */
export type OidcIssuer = AsyncDisposable & {
  url: string;
  clientId: string;
  /** Serves with this certificate from now on, as an ingress does that has read its Secret anew. */
  serve(material: { cert: string; key: string }): void;
  /** A token signed with a key that nobody has seen before: who checks it has to ask for the keys. */
  freshToken(subject: string): string;
};

/** @param host the address it listens on; the certificate has to hold it */
export async function startOidcIssuer(
  host: string,
  material: { cert: string; key: string },
): Promise<OidcIssuer> {
  let current = newKey(0);
  let number = 0;
  const clientId = 'colonnade-test';
  const server = createServer({ ...material }, (request, response) => {
    const json = (body: object) => {
      response.setHeader('content-type', 'application/json');
      // Nobody may go by what was true a while ago.
      response.setHeader('cache-control', 'no-store');
      response.end(JSON.stringify(body));
    };
    if (request.url === '/.well-known/openid-configuration')
      return json({
        issuer: url,
        jwks_uri: `${url}/keys`,
        authorization_endpoint: `${url}/auth`,
        token_endpoint: `${url}/token`,
        response_types_supported: ['id_token'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
      });
    if (request.url === '/keys') return json({ keys: [current.jwk] });
    response.statusCode = 404;
    response.end();
  }).listen(0, host);
  await once(server, 'listening');
  const url = `https://${host}:${(server.address() as AddressInfo).port}`;
  return {
    url,
    clientId,
    serve(next) {
      server.setSecureContext(next);
      // Connections of before would still stand for the old certificate.
      server.closeAllConnections();
    },
    freshToken(subject) {
      number += 1;
      current = newKey(number);
      const seconds = Math.floor(Date.now() / 1000);
      const claims = { iss: url, aud: clientId, sub: subject, iat: seconds - 5, exp: seconds + 600 };
      return signToken(current, claims);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

type SigningKey = { kid: string; privateKey: KeyObject; jwk: object };

function newKey(number: number): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = `key-${number}`;
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' } };
}

function signToken({ kid, privateKey }: SigningKey, claims: object): string {
  const part = (x: object) => Buffer.from(JSON.stringify(x)).toString('base64url');
  const text = `${part({ alg: 'RS256', kid, typ: 'JWT' })}.${part(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
}
