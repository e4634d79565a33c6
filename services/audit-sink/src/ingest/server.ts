import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Bus } from '@colonnade/bus';
import { ColonnadeError, type ErrorCode, toColonnadeError } from '@colonnade/contracts';
import type { Events } from '../events.ts';
import { type IngestCredentials, isAllowed } from './authenticate.ts';
import { parseEventList } from './parse-list.ts';
import { storeItems } from './store.ts';

export type IngestOptions = {
  host: string;
  port: number;
  certFile: string;
  keyFile: string;
  clientCaFile: string | undefined;
  credentials: IngestCredentials;
  maxBodyBytes: number;
};

export type IngestServer = AsyncDisposable & {
  url: string;
  /** Reads certificate, key and CA again. */
  reload(): void;
};

/** Bodies in memory at once; more are asked to come again. */
const MAX_AT_ONCE = 4;

const STATUS: Partial<Record<ErrorCode, number>> = {
  bad_request: 400,
  unauthorized: 401,
  method_not_allowed: 405,
  too_large: 413,
  unsupported_media_type: 415,
  overloaded: 429,
  bus_unavailable: 503,
};

/**
 * Takes audit.k8s.io/v1 EventLists from the webhook of a kube-apiserver. It answers 200 when the stream has every event.
 * @throws ColonnadeError `misconfigured` when a file cannot be read
 */
export async function startIngest(
  options: IngestOptions,
  deps: { bus: Bus; events: Events },
): Promise<IngestServer> {
  let busy = 0;
  const server = createServer(
    { ...readTls(options), requestTimeout: 60_000, headersTimeout: 10_000, maxHeaderSize: 16_384 },
    (request, response) => {
      void handle(request, response);
    },
  );
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    busy += 1;
    try {
      refuseUnfit(request, options.credentials, busy);
      const items = parseEventList(await readBody(request, options.maxBodyBytes));
      answer(response, 200, await storeItems(deps.bus, items, deps.events));
      deps.events.ingestAnswered(200);
    } catch (thrown) {
      const error = toColonnadeError(thrown);
      const status = STATUS[error.code] ?? 500;
      deps.events.ingestAnswered(status);
      deps.events.ingestFailed(error);
      // The rest of a body nobody reads would hold the connection.
      if (!request.complete) response.setHeader('connection', 'close');
      if (status === 429 || status === 503) response.setHeader('retry-after', '1');
      if (status === 405) response.setHeader('allow', 'POST');
      answer(response, status, { code: error.code, message: error.message });
    } finally {
      busy -= 1;
    }
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port, address, family } = server.address() as AddressInfo;
  return {
    url: `https://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    reload: () => server.setSecureContext(readTls(options)),
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      await closed;
    },
  };
}

function readTls({ certFile, keyFile, clientCaFile }: IngestOptions) {
  try {
    return {
      cert: readFileSync(certFile),
      key: readFileSync(keyFile),
      minVersion: 'TLSv1.2' as const,
      ...(clientCaFile === undefined ? {} : { ca: readFileSync(clientCaFile), requestCert: true }),
      // Who has no certificate may have a token; `isAllowed` decides.
      rejectUnauthorized: false,
    };
  } catch (cause) {
    throw new ColonnadeError('misconfigured', 'a TLS file of the ingest endpoint cannot be read', { cause });
  }
}

function refuseUnfit(request: IncomingMessage, credentials: IngestCredentials, busy: number): void {
  if (!isAllowed(request, credentials)) {
    throw new ColonnadeError('unauthorized', 'neither a client certificate nor a token that is known');
  }
  if (request.method !== 'POST') throw new ColonnadeError('method_not_allowed', 'POST an EventList');
  const type = request.headers['content-type'] ?? '';
  if (!/^application\/json\b/iu.test(type) || request.headers['content-encoding'] !== undefined) {
    throw new ColonnadeError('unsupported_media_type', 'send application/json without an encoding');
  }
  if (busy > MAX_AT_ONCE) throw new ColonnadeError('overloaded', 'too many lists at once');
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  // Not destroyed, so that the refusal can still be answered.
  for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBytes) throw new ColonnadeError('too_large', `a list may have ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function answer(response: ServerResponse, status: number, body: object): void {
  if (response.headersSent) return;
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
