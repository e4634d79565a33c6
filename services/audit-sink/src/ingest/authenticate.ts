import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

export type IngestCredentials = {
  /** SHA-256 of the token, so that comparing takes the same time for every guess. */
  tokenHash: Buffer | undefined;
  /** Whether a certificate of the client CA lets in, and which common names; none: all. */
  clientCertificates: boolean;
  clientNames: readonly string[];
};

export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Whether a request comes from a source that may hand in events: by its certificate or by its token. */
export function isAllowed(request: IncomingMessage, credentials: IngestCredentials): boolean {
  return hasToken(request, credentials) || hasCertificate(request.socket as TLSSocket, credentials);
}

function hasToken({ headers }: IncomingMessage, { tokenHash }: IngestCredentials): boolean {
  const [, token] = /^Bearer +(\S+)$/iu.exec(headers.authorization ?? '') ?? [];
  return tokenHash !== undefined && token !== undefined && timingSafeEqual(hashToken(token), tokenHash);
}

function hasCertificate(socket: TLSSocket, { clientCertificates, clientNames }: IngestCredentials): boolean {
  if (!clientCertificates || !socket.authorized) return false;
  if (clientNames.length === 0) return true;
  const name: unknown = socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' && clientNames.includes(name);
}
