import type { Auditor, AuditSpan } from '@colonnade/audit';
import type { Bus } from '@colonnade/bus';
import { ColonnadeError, type ErrorCode, type ObjectRef } from '@colonnade/contracts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Suppressed } from './auth/denial-limit.ts';
import type { Events } from './events.ts';
import { PROBLEMS, writeProblem } from './http/problem.ts';

/**
 * Puts requests on record in the stream AUDIT: everything that changes something, reveals, tokens, and every denied
 * access. Hooks, so that routes know nothing of it. Register between authentication and authorisation.
 */
export type AuditPlugin = { register(app: FastifyInstance): void };

declare module 'fastify' {
  interface FastifyRequest {
    auditSpan: AuditSpan | undefined;
    /** Its first record is stored. */
    auditReceived: boolean;
    problemCode: ErrorCode | undefined;
  }
}

const ANONYMOUS = { username: 'system:anonymous', groups: ['system:unauthenticated'] };
/** Sources that the record of suppressed denials names, the loudest first. */
const SOURCES_NAMED = 10;
const AUDIT_ID = /^[A-Za-z0-9-]{1,64}$/u;

export function createAuditPlugin(
  auditor: Auditor,
  bus: Pick<Bus, 'isConnected'>,
  events: Events,
): AuditPlugin {
  return {
    register(app) {
      app.decorateRequest('auditSpan', undefined);
      app.decorateRequest('auditReceived', false);
      app.decorateRequest('problemCode', undefined);
      app.addHook('onRequest', async (request) => {
        request.auditSpan = auditor.begin(describe(request));
      });
      // Before anything happens: when the stream takes no records, nothing is changed and nothing is opened.
      app.addHook('preHandler', async (request) => {
        if (request.routeOptions.config.recorded !== true) return;
        requireBus(bus);
        await request.auditSpan?.received();
        request.auditReceived = true;
      });
      app.addHook('onSend', (request, reply, payload) => complete(bus, events, request, reply, payload));
    },
  };
}

/** The answer leaves only after its record is acknowledged. */
async function complete(
  bus: Pick<Bus, 'isConnected'>,
  events: Events,
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  const span = request.auditSpan ?? undefined;
  if (span === undefined) return payload;
  reply.header('audit-id', span.auditID);
  const denied = reply.statusCode === 401 || reply.statusCode === 403;
  if (!denied && !isOpen(request)) return payload;
  try {
    requireBus(bus);
    await span.complete({
      code: reply.statusCode,
      ...reasonOf(request),
      annotations: annotate(reply, denied),
    });
    return payload;
  } catch (thrown) {
    events.auditFailed({ requestId: request.id, error: thrown });
    return writeProblem(reply, notOnRecord(request, reply), request.id);
  }
}

/** Denials beyond the limit are told of together; what has a first record gets its second in any case. */
function isOpen(request: FastifyRequest): boolean {
  if (request.problemCode === 'rate_limited') return request.auditReceived;
  return request.routeOptions.config.recorded === true;
}

/** The one record of a minute's denials that got none of their own. @throws ColonnadeError `bus_unavailable` */
export async function recordSuppressed(auditor: Auditor, service: string, what: Suppressed): Promise<void> {
  const loudest = [...what.sources].sort(([, a], [, b]) => b - a).slice(0, SOURCES_NAMED);
  const span = auditor.begin({ verb: 'suppress', requestURI: '*', user: { username: service, groups: [] } });
  await span.complete({
    code: PROBLEMS.rate_limited.status,
    reason: 'rate_limited',
    annotations: {
      'colonnade/decision': 'forbid',
      'colonnade/suppressed': String(what.total),
      'colonnade/sources': loudest.map(([source, count]) => `${source}=${count}`).join(' '),
    },
  });
}

/** At once, instead of after the time a publish waits: every request would wait for it, the refused ones too. */
function requireBus(bus: Pick<Bus, 'isConnected'>): void {
  if (!bus.isConnected())
    throw new ColonnadeError('bus_unavailable', 'not connected to NATS: nothing can be put on record');
}

function notOnRecord(request: FastifyRequest, reply: FastifyReply): ColonnadeError {
  const changed = reply.statusCode < 400 && !['GET', 'HEAD'].includes(request.method);
  const what = changed
    ? 'the request was carried out, but the record of its end'
    : 'the record of this request';
  return new ColonnadeError(
    'bus_unavailable',
    `${what} could not be stored in the audit stream; the answer is withheld`,
  );
}

function reasonOf(request: FastifyRequest): { reason?: string } {
  return request.problemCode === undefined ? {} : { reason: request.problemCode };
}

function annotate(reply: FastifyReply, denied: boolean): Readonly<Record<string, string>> {
  const location = reply.getHeader('location');
  return {
    'colonnade/decision': denied ? 'forbid' : 'allow',
    ...(typeof location === 'string' ? { 'colonnade/location': location } : {}),
  };
}

function describe(request: FastifyRequest): Parameters<Auditor['begin']>[0] {
  const { principal, headers } = request;
  const given = headers['audit-id'];
  const userAgent = headers['user-agent'];
  return {
    verb: verbOf(request),
    requestURI: request.url,
    user: principal === undefined ? ANONYMOUS : { username: principal.sub, groups: principal.roles },
    sourceIPs: [request.ip],
    objectRef: objectOf(request),
    auditID: typeof given === 'string' && AUDIT_ID.test(given) ? given : request.id,
    ...(userAgent === undefined ? {} : { userAgent }),
  };
}

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

function verbOf(request: FastifyRequest): string {
  const url = request.routeOptions.url ?? '';
  if (url.endsWith('/list')) return 'list';
  return VERBS[request.method] ?? (/:[a-z]+$/u.test(url) ? 'get' : 'list');
}

/** From the route: `/pillars/:pid/reveal` is the subresource reveal of a pillar; a minion lives in its master. */
function objectOf(request: FastifyRequest): ObjectRef {
  const params = (request.params ?? {}) as Record<string, string>;
  const [resource, second, third] = (request.routeOptions.url ?? '').split('/').slice(1);
  const clip = (text: string | undefined) => text?.slice(0, 512).toWellFormed();
  if (third === 'minions') return { resource: third, namespace: clip(params.master), name: clip(params.id) };
  const name = second?.startsWith(':') ? clip(params[second.slice(1)]) : undefined;
  return { resource: resource === '' ? undefined : resource, name, subresource: third };
}
