import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';

/** An OpenID Connect issuer on a port of its own: discovery, keys that can be changed, and tokens of any kind. */
export type OidcIssuer = AsyncDisposable & {
  url: string;
  /** How often each path was asked. */
  asked: Map<string, number>;
  /** A new key, which signs from now on; those before stay in the set. */
  addKey(alg?: string): Promise<string>;
  /** Takes a key out of the published set; it can still sign. */
  withdrawKey(kid: string): void;
  /** What discovery and the key set answer from now on; undefined: what is right. */
  answer: { status?: number; body?: string } | undefined;
  sign(claims?: JWTPayload, how?: { kid?: string; header?: object; issuer?: string }): Promise<string>;
  stop(): Promise<void>;
  start(): Promise<void>;
};

type Key = { kid: string; alg: string; privateKey: CryptoKey; jwk: JWK; published: boolean };

export async function startOidcIssuer(audience: string): Promise<OidcIssuer> {
  const keys = new Map<string, Key>();
  const asked = new Map<string, number>();
  let server: Server | undefined;
  let port = 0;
  let newest = '';
  const issuer: OidcIssuer = {
    ...{ url: '', asked, answer: undefined },
    async addKey(alg = 'RS256') {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
      newest = `key-${keys.size + 1}`;
      const jwk = { ...(await exportJWK(publicKey)), kid: newest, alg, use: 'sig' };
      keys.set(newest, { kid: newest, alg, privateKey, jwk, published: true });
      return newest;
    },
    withdrawKey(kid) {
      const key = keys.get(kid);
      if (key !== undefined) key.published = false;
      newest = [...keys.values()].findLast(({ published }) => published)?.kid ?? kid;
    },
    async sign(claims = {}, how = {}) {
      const key = keys.get(how.kid ?? newest) as Key;
      const nowS = Math.floor(Date.now() / 1000);
      const all = { iss: how.issuer ?? issuer.url, aud: audience, iat: nowS, exp: nowS + 300, ...claims };
      return new SignJWT(all)
        .setProtectedHeader({ alg: key.alg, kid: key.kid, ...how.header })
        .sign(key.privateKey);
    },
    async start() {
      server = createServer((request, response) => {
        const path = request.url ?? '';
        asked.set(path, (asked.get(path) ?? 0) + 1);
        const jwks = { keys: [...keys.values()].filter((key) => key.published).map(({ jwk }) => jwk) };
        const discovery = { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` };
        const right = JSON.stringify(path === '/jwks' ? jwks : discovery);
        response.writeHead(issuer.answer?.status ?? 200, { 'content-type': 'application/json' });
        response.end(issuer.answer?.body ?? right);
      });
      const { promise, resolve } = Promise.withResolvers<void>();
      server.listen(port, '127.0.0.1', resolve);
      await promise;
      port = (server.address() as AddressInfo).port;
      issuer.url = `http://127.0.0.1:${port}`;
    },
    async stop() {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (server === undefined) return;
      server.close(() => resolve());
      server.closeAllConnections();
      await promise;
      server = undefined;
    },
    [Symbol.asyncDispose]: () => issuer.stop(),
  };
  await issuer.start();
  await issuer.addKey();
  return issuer;
}
