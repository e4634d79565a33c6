import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

const AUDIT_ID = /^[\x21-\x7e]{1,64}$/u;

/** The client's Audit-ID: 1–64 visible ASCII characters, which go back in a header; undefined for anything else. */
export function auditIdOf(request: FastifyRequest): string | undefined {
  const given = request.headers['audit-id'];
  return typeof given === 'string' && AUDIT_ID.test(given) ? given : undefined;
}

/**
 * Where a request came from: the client first, then the proxies it came through, the one that connected to us last.
 * X-Forwarded-For counts only as far as Fastify's `trustProxy` trusts whoever wrote it.
 */
export function sourceIPsOf(request: FastifyRequest): string[] {
  const hops = (request.ips ?? [request.ip]).filter((hop) => isIP(hop) !== 0);
  return hops.toReversed();
}
