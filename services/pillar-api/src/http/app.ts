import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { AuditPlugin } from '@colonnade/audit';
import {
  BULK_MEDIA_TYPES,
  type Call,
  ColonnadeError,
  type ErrorCode,
  LIMITS,
  startCall,
} from '@colonnade/contracts';
import type { OpsRoute } from '@colonnade/service-kit';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { type Authenticator, authenticate, type Principal } from '../auth/authenticate.ts';
import type { DenialLimit } from '../auth/denial-limit.ts';
import { type Permission, requirePermission } from '../auth/permissions.ts';
import type { Events } from '../events.ts';
import { isJsonBody, parseBody } from './body.ts';
import { limitDenials } from './deny.ts';
import { fromHttpError } from './foreign-errors.ts';
import { limitArrival } from './limit-arrival.ts';
import { writeProblem } from './problem.ts';
import { limitRate, type Rates } from './rates.ts';
import { type OnRefused, tellRefusal } from './refusal.ts';
import type { Method, Route, Scope } from './route.ts';
import { adoptStrays, createStrays, requireHost } from './strays.ts';
import { acceptStreams } from './streamed-route.ts';

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | undefined;
    /** Why there is no principal. */
    denial: ColonnadeError | undefined;
    call: Call;
    startedMs: number;
    /** The code of the problem it was answered with. */
    problemCode: ErrorCode | undefined;
    /** The bytes of a body that could not be parsed. */
    unparsed: Buffer | undefined;
  }
  interface FastifyContextConfig {
    /** Absent: nobody may (deny by default). */
    permission?: Permission | 'anonymous';
    /** Absent: only who has the permission for the whole estate. */
    scope?: Scope;
    /** Media types of a body that is read as it arrives. */
    accepts?: readonly string[] | undefined;
    rates?: Rates | undefined;
    onRefused?: OnRefused | undefined;
  }
}

export type AppOptions = {
  authenticator: Authenticator;
  routes: readonly Route[];
  /** Liveness, readiness, metrics. */
  opsRoutes: readonly OpsRoute[];
  metricsAnonymous: boolean;
  rates: Rates;
  denials: DenialLimit;
  audit: AuditPlugin;
  /** Proxies whose X-Forwarded-For counts. */
  trustedProxies: string | undefined;
  events: Events;
  requestBudgetMs: number;
};

/** The HTTP side: one parser, one error handler, one place where access is decided. */
export function createApp(options: AppOptions): FastifyInstance {
  const strays = createStrays();
  const app: FastifyInstance = fastify({
    logger: false,
    genReqId: () => randomUUID(),
    bodyLimit: LIMITS.httpBodyBytes,
    exposeHeadRoutes: true,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Of a body that is read as it arrives only its silence is limited: see limitArrival.
    requestTimeout: 0,
    trustProxy: options.trustedProxies ?? false,
    routerOptions: { maxParamLength: 1024 },
    http: { maxHeaderSize: 16 * 1024, headersTimeout: 10_000, requireHostHeader: false },
    frameworkErrors: (error, request, reply) => strays.take(app, error, request.raw, reply.raw),
    clientErrorHandler: answerBrokenRequest,
  });
  adoptStrays(app, strays);
  acceptJsonOnly(app);
  acceptStreams(app, Object.values(BULK_MEDIA_TYPES));
  addHooks(app, options);
  const noRoute = (request: FastifyRequest, reply: FastifyReply) =>
    tellNoRoute(app, strays.reasonOf(request), request, reply);
  app.setErrorHandler(
    options.audit.errorHandler((error, request, reply) => {
      const thrown = isForeignMethod(error, request) ? noRoute(request, reply) : error;
      const telling = tellRefusal(options.audit, thrown, request, reply);
      if (telling === undefined) return answerError(options, thrown, request, reply);
      return telling.then((told) => answerError(options, told, request, reply));
    }),
  );
  app.setNotFoundHandler((request, reply) => {
    throw noRoute(request, reply);
  });
  for (const route of options.routes) registerRoute(app, route);
  for (const route of options.opsRoutes) registerOpsRoute(app, route, options.metricsAnonymous);
  return app;
}

/** In this order: who is it, begin the record, may he; the record's end comes before the answer. */
function addHooks(app: FastifyInstance, options: AppOptions): void {
  app.decorateRequest('principal', undefined);
  app.decorateRequest('denial', undefined);
  app.decorateRequest('startedMs', 0);
  app.decorateRequest('problemCode', undefined);
  app.decorateRequest('unparsed', undefined);
  limitArrival(app, breakOff);
  app.addHook('onRequest', (request) => identify(options, request));
  // Before the record begins: what is over the rate leaves none, or it could fill the stream that records go to.
  app.addHook('onRequest', async (request, reply) => {
    const rates = request.routeOptions.config.rates ?? options.rates;
    if (request.principal !== undefined) limitRate(rates, request.principal.rateKey, reply);
  });
  options.audit.register(app);
  app.addHook('onRequest', async (request) => {
    authorise(request);
    requireHost(request);
  });
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onSend', async (_request, reply) => {
    // Public keys are to be kept by who reads them; nothing else is.
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
    reply.header('x-content-type-options', 'nosniff');
    // A kept connection would hold up the end until the client lets go of it.
    if (closing) reply.header('connection', 'close');
  });
  app.addHook('onResponse', async (request, reply) => {
    const { method, id, routeOptions, startedMs } = request;
    const durationMs = performance.now() - startedMs;
    options.events.answered({
      method,
      route: routeOptions.url ?? 'none',
      status: reply.statusCode,
      durationMs,
      requestId: id,
    });
  });
}

function acceptJsonOnly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, body: Buffer) => {
      const { 'content-type': type, 'content-encoding': encoding } = request.headers;
      if (request.routeOptions.config.onRefused !== undefined) request.unparsed = body;
      if (!isJsonBody(type, encoding)) {
        throw new ColonnadeError(
          'unsupported_media_type',
          'the body must be application/json in UTF-8, not compressed',
        );
      }
      return parseBody(body);
    },
  );
}

async function identify(options: AppOptions, request: FastifyRequest): Promise<void> {
  request.startedMs = performance.now();
  const parent = request.headers.traceparent;
  request.call = startCall(options.requestBudgetMs, typeof parent === 'string' ? parent : undefined);
  if (request.routeOptions.config.permission === 'anonymous') return;
  try {
    request.principal = await authenticate(options.authenticator, request.headers, Date.now());
  } catch (thrown) {
    request.denial = fromHttpError(thrown);
  }
}

/** Deny by default: a route without a permission is for nobody; unknown paths are only told to who is known. */
function authorise(request: FastifyRequest): void {
  const { permission, scope = 'estate' } = request.routeOptions.config;
  if (permission === 'anonymous') return;
  if (request.denial !== undefined) throw request.denial;
  if (request.principal === undefined) throw new ColonnadeError('unauthorized', 'no API token');
  if (request.principal.workload?.kind === 'enrolment' && permission !== 'identity:enrol')
    throw new ColonnadeError('unauthorized', 'a one-time token is good for POST /identity/enrol alone');
  if (request.is404) return;
  if (permission === undefined) throw new ColonnadeError('forbidden', 'nobody may use this route');
  const { permissions, access } = request.principal;
  requirePermission(scope === 'estate' ? access.whole : permissions, permission);
}

function registerRoute(app: FastifyInstance, route: Route): void {
  const { method, url, permission, scope, audit, accepts, rates, onRefused } = route;
  app.route({
    method,
    url,
    config: { permission, scope, audit, accepts, rates, onRefused },
    handler: async (request, reply) => {
      if (request.principal === undefined) throw new ColonnadeError('unauthorized', 'no API token');
      const { audit, principal } = request;
      const call = { ...request.call, user: principal.sub };
      const recorded = audit === undefined ? call : { ...call, auditID: audit.auditID };
      return route.run(request, reply, principal, recorded);
    },
  });
}

function registerOpsRoute(app: FastifyInstance, route: OpsRoute, metricsAnonymous: boolean): void {
  const open = route.path !== '/metrics' || metricsAnonymous;
  app.route({
    method: 'GET',
    url: route.path,
    config: { permission: open ? 'anonymous' : 'metrics:read', scope: 'none' },
    handler: async (_request, reply) => {
      const answer = await route.answer();
      reply
        .code(answer.status)
        .header('content-type', answer.contentType)
        .headers(answer.headers ?? {});
      return answer.body;
    },
  });
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

function tellNoRoute(
  app: FastifyInstance,
  reason: ColonnadeError | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): ColonnadeError {
  if (reason?.code === 'method_not_allowed') reply.header('allow', METHODS.join(', '));
  if (reason !== undefined) return reason;
  const path = request.url.split('?', 1)[0] ?? '/';
  const allowed: string[] = METHODS.filter((method) => app.findRoute({ url: path, method }) !== null);
  if (allowed.length === 0) return new ColonnadeError('not_found', 'there is no such path');
  if (allowed[0] === 'GET') allowed.splice(1, 0, 'HEAD');
  reply.header('allow', allowed.join(', '));
  return new ColonnadeError('method_not_allowed', `this path takes ${allowed.join(', ')}`);
}

/** What Fastify refuses for its body before it says that there is no such route, a QUERY without one among it. */
function isForeignMethod(error: unknown, { is404 }: FastifyRequest): boolean {
  if ((error as { code?: unknown } | null)?.code === 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE') return true;
  return is404 && fromHttpError(error).code === 'unsupported_media_type';
}

/** @returns the body of the answer */
function answerError(
  { denials, events }: AppOptions,
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): string {
  const error = limitDenials(denials, events, fromHttpError(thrown), request, reply);
  request.problemCode = error.code;
  if (error.code === 'internal') events.faulted({ requestId: request.id, error: thrown });
  return writeProblem(reply, error, request.id);
}

/** A body that does not arrive: the same answer as Node's own limit gives. */
function breakOff(socket: Socket): void {
  answerBrokenRequest(Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
}

/** What is not even HTTP: answered by hand in the same shape, and the connection is closed. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const [line, detail] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'the headers are too large']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'the request did not arrive in time']
        : ['400 Bad Request', 'this is not well-formed HTTP'];
  const status = Number(line?.slice(0, 3));
  const body = JSON.stringify({
    code: 'bad_request',
    detail,
    instance: `urn:uuid:${randomUUID()}`,
    status,
    title: line?.slice(4),
    type: 'urn:colonnade:error:bad_request',
  });
  const head = `HTTP/1.1 ${line}\r\ncontent-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`;
  socket.end(head + body);
}
