import { ColonnadeError } from '@colonnade/contracts';
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose';
import { z } from 'zod';

/** What is asked of an issuer, in bytes and milliseconds. */
const MAX_BYTES = 256 * 1024;
const TIMEOUT_MS = 3000;
/** Between two tries to reach an issuer that did not answer. */
const RETRY_MS = 5000;
/** Between two looks for a key that is not in the set: made-up key ids must not become a flood of requests. */
const REFETCH_MS = 10_000;
/** A key the issuer has taken out of its set signs nothing for longer than this. */
const KEYS_KEPT_MS = 10 * 60_000;
/** As long as the issuer's own address of its keys is believed. */
const DISCOVERY_KEPT_MS = 60 * 60_000;

const zDiscovery = z.object({ issuer: z.string(), jwks_uri: z.string() });

/** Gives the keys of an issuer, asked for when they are needed first. */
export type IssuerKeys = {
  /** @throws ColonnadeError `unavailable` while the issuer cannot be reached or says what it must not */
  get(): Promise<JWTVerifyGetKey>;
};

/** https, or http of this host itself. */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  if (username !== '' || password !== '') return false;
  const isLoopback = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback);
}

/**
 * OpenID Connect Discovery 1.0 and the JWKS it names. Lazy: an issuer that is away at the start is asked again at the
 * next token of its, but not more often than every five seconds.
 */
export function createIssuerKeys(issuer: string, nowMs: () => number = () => performance.now()): IssuerKeys {
  let found: { keys: JWTVerifyGetKey; uri: string; untilMs: number } | undefined;
  let asking: Promise<JWTVerifyGetKey> | undefined;
  let failed: { error: ColonnadeError; untilMs: number } | undefined;

  const discover = async () => {
    try {
      const uri = await readJwksUri(issuer);
      // The same set keeps its keys and its cooldown.
      const keys = found?.uri === uri ? found.keys : remoteKeys(uri);
      found = { keys, uri, untilMs: nowMs() + DISCOVERY_KEPT_MS };
      return keys;
    } catch (cause) {
      const error = unavailable(cause);
      failed = { error, untilMs: nowMs() + RETRY_MS };
      // What was discovered before goes on: only its age is in question.
      if (found !== undefined) return found.keys;
      throw error;
    } finally {
      asking = undefined;
    }
  };
  return {
    async get() {
      const now = nowMs();
      if (found !== undefined && now < found.untilMs) return found.keys;
      if (failed !== undefined && now < failed.untilMs) {
        if (found !== undefined) return found.keys;
        throw failed.error;
      }
      asking ??= discover();
      return asking;
    },
  };
}

export function unavailable(cause: unknown): ColonnadeError {
  return new ColonnadeError('unavailable', 'the issuer of the token cannot be asked for its keys', { cause });
}

async function readJwksUri(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/u, '')}/.well-known/openid-configuration`;
  const response = await fetchBounded(url, { headers: { accept: 'application/json' } });
  if (response.status !== 200) throw new Error(`discovery answered ${response.status}`);
  const document = zDiscovery.parse(await response.json());
  if (document.issuer !== issuer) throw new Error('discovery names another issuer');
  if (!isSafeUrl(document.jwks_uri)) throw new Error('jwks_uri is neither https nor of this host');
  return document.jwks_uri;
}

function remoteKeys(uri: string): JWTVerifyGetKey {
  return createRemoteJWKSet(new URL(uri), {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: REFETCH_MS,
    cacheMaxAge: KEYS_KEPT_MS,
    [customFetch]: fetchBounded,
  });
}

/** No redirects, no endless answers, no endless waiting. */
async function fetchBounded(url: string, init: RequestInit = {}): Promise<Response> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, { ...init, signal, redirect: 'error' });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`the answer is larger than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  const { status, headers } = response;
  const hasBody = status !== 204 && status !== 304;
  return new Response(hasBody ? Buffer.concat(chunks) : null, { status, headers });
}
