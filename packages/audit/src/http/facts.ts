import { isUtf8 } from 'node:buffer';
import { isIP } from 'node:net';
import { hideTokens, isAuditId } from '@colonnade/contracts';
import type { FastifyRequest } from 'fastify';

/** The client's Audit-ID; undefined for what is none. */
export function auditIdOf(request: FastifyRequest): string | undefined {
  const given = request.headers['audit-id'];
  return isAuditId(given) && hideTokens(given) === given ? given : undefined;
}

/** Header bytes reach us as Latin-1; what is valid UTF-8 was meant as that. Undefined: none was sent. */
export function userAgentOf({ headers }: FastifyRequest): string | undefined {
  const given = headers['user-agent'];
  if (given === undefined || !/[^\x00-\x7f]/u.test(given)) return given;
  const bytes = Buffer.from(given, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : given;
}

/**
 * Where a request came from: the client first, then the proxies it came through, the one that connected to us last.
 * X-Forwarded-For counts only as far as Fastify's `trustProxy` trusts whoever wrote it.
 */
export function sourceIPsOf(request: FastifyRequest): string[] {
  const hops = (request.ips ?? [request.ip]).filter((hop) => isIP(hop) !== 0);
  return hops.toReversed();
}
