import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import { type ApiClient, createApiClient } from '@colonnade/api-client';
import type { Inspector } from '@colonnade/bus';
import { usageError } from './exit-codes.ts';
import { apiSettings, busSettings, type Chosen } from './profile/settings.ts';
import { createOutput, type Output } from './terminal/output.ts';

/** What every command has: where to ask, where to answer, and when to stop. */
export type Session = {
  readonly out: Output;
  /** The result is wanted as the API's JSON. */
  readonly json: boolean;
  readonly signal: AbortSignal;
  readonly env: NodeJS.ProcessEnv;
  readonly chosen: Chosen;
  /** @throws ColonnadeError `misconfigured` without a profile */
  api(): ApiClient;
  /** As the NATS user `operator`. @throws ColonnadeError `misconfigured` | `bus_unavailable` */
  inspector(): Promise<Inspector>;
};

/** The server's own budget is 5 s; a purge rewrites the store's file and may take long. */
const TIMEOUT_MS = 120_000;

export function createSession(
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  options: { json: boolean; profile: string | undefined; url: string | undefined },
): Session {
  const chosen = { profile: options.profile, url: options.url };
  let api: ApiClient | undefined;
  return {
    ...{ out: createOutput(), json: options.json, signal, env, chosen },
    api() {
      if (api !== undefined) return api;
      const { url, token, caFile } = apiSettings(env, chosen);
      trustAuthority(caFile);
      api = createApiClient(url, token, { signal, timeoutMs: TIMEOUT_MS });
      return api;
    },
    async inspector() {
      const { url, nkeySeed, caFile } = busSettings(env, chosen);
      const silent = { info: () => {}, warn: () => {}, error: () => {} };
      // Most commands never need a NATS client.
      const { connectInspector } = await import('@colonnade/bus');
      return await connectInspector({
        servers: url,
        nkeySeed,
        name: 'colonnade',
        logger: silent,
        caFile,
      });
    },
  };
}

/** `fetch` takes authorities from the process alone. @throws ColonnadeError `misconfigured` */
export function trustAuthority(file: string | undefined): void {
  if (file === undefined) return;
  try {
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), readFileSync(file, 'utf8')]);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw usageError(`the CA file ${file} cannot be used: ${why}`);
  }
}
