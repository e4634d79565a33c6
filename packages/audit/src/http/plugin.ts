import type { ColonnadeError, ObjectRef } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { AuditRecorder } from '../event/auditor.ts';
import { createBacklog } from '../event/backlog.ts';
import type { AuditOutcome, AuditUser } from '../event/request.ts';
import type { AuditWatch } from '../event/watch.ts';
import { recordBodies } from './bodies.ts';
import { type Described, describeRequest } from './describe.ts';
import { auditIdOf, sourceIPsOf, userAgentOf } from './facts.ts';
import { type AuditMode, modeOf } from './modes.ts';
import { createRequestRecord, type RequestRecord } from './record.ts';

/** What a route tells of itself, in its `config.audit`. */
export type RouteAudit = {
  /** Of the bodies; a body without one is not recorded, since nobody says where in it a secret stands. */
  request?: z.ZodType;
  response?: z.ZodType;
  /** A change, a reveal, a whole estate: at least Metadata, every stage, and no answer without the record of its end. */
  floor?: boolean;
  /** Its answer goes on: ResponseStarted when it begins, ResponseComplete when the connection ends. */
  longRunning?: boolean;
};

type RequestState = {
  auditID: string;
  record: RequestRecord | undefined;
  /** The error handler has failed too. */
  panicked: boolean;
  /** The end of an answer that goes on after its head was sent. */
  pending: AuditOutcome | undefined;
};

declare module 'fastify' {
  interface FastifyRequest {
    audit: RequestState | undefined;
  }
  interface FastifyContextConfig {
    audit?: RouteAudit;
  }
}

export type AuditPluginOptions = {
  auditor: AuditRecorder;
  watch: AuditWatch;
  /** AUDIT_MODE; undefined: strict for writes, batch for reads. */
  mode: AuditMode | undefined;
  userOf: (request: FastifyRequest) => AuditUser;
  /** The body as it was parsed. */
  bodyOf: (request: FastifyRequest) => Value | undefined;
  /** What the URL does not say of an object, asked before the handler runs; undefined: nothing more is known. */
  locate?: (request: FastifyRequest, described: Described) => Promise<ObjectRef | undefined>;
  /** What the service adds to the record of an end. */
  outcomeOf?: (request: FastifyRequest, reply: FastifyReply) => Pick<AuditOutcome, 'reason' | 'annotations'>;
  /** Requests that leave no record at all, such as a stranger's after his share of denials. */
  isUnrecorded?: (request: FastifyRequest, reply: FastifyReply) => boolean;
  /** Turns a reply into an error answer and returns its body. */
  writeError: (reply: FastifyReply, error: ColonnadeError, request: FastifyRequest) => string;
};

/** Put between authentication and authorisation. Disposing stores what waits. */
export type AuditPlugin = AsyncDisposable & {
  register(app: FastifyInstance): void;
  /**
   * Begins the record of a request that was refused before its handler, for who does something about it first.
   * @throws ColonnadeError when it has a floor and cannot be put on record
   */
  begin(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  /** Wraps an error handler: when it throws itself, the request ends as a Panic. */
  errorHandler<H extends ErrorHandler>(handler: H): H;
};

type ErrorHandler = (
  this: FastifyInstance,
  error: never,
  request: FastifyRequest,
  reply: FastifyReply,
) => unknown;

/** Every request on record, as seed 001 tells it of kube-apiserver's WithAudit; routes know nothing of it. */
export function auditPlugin(options: AuditPluginOptions): AuditPlugin {
  const backlog = createBacklog({ auditor: options.auditor, watch: options.watch });
  const begin = (request: FastifyRequest, described: Described, denied: boolean) => {
    const floor = request.routeOptions.config.audit?.floor === true;
    const { verb } = described;
    const mode = modeOf({ asked: options.mode, verb, floor, denied });
    const span = options.auditor.begin(auditRequest(options, request, described, floor));
    // Nobody may find out without a trace that he may not.
    const hold = floor || (denied && mode === 'blocking-strict');
    return createRequestRecord({ span, backlog, watch: options.watch, mode, hold });
  };
  const beginOnce = async (request: FastifyRequest, reply: FastifyReply) => {
    const state = stateOf(request);
    if (state.record !== undefined) return;
    const described = await locate(options, request);
    state.record = begin(request, described, false);
    finishOnClose(state, state.record, reply);
    await state.record.received();
  };
  return {
    begin: beginOnce,
    register(app) {
      app.decorateRequest('audit', undefined);
      app.addHook('onRequest', async (request) => {
        stateOf(request);
      });
      app.addHook('preHandler', beginOnce);
      app.addHook('onSend', async (request, reply, payload) => {
        const state = stateOf(request);
        reply.header('audit-id', state.auditID);
        if (state.record === undefined) {
          if (options.isUnrecorded?.(request, reply) === true) return payload;
          state.record = begin(request, describe(request), isDenied(reply));
        }
        return end(options, state.record, request, reply, payload);
      });
    },
    errorHandler: (handler) => guard(handler),
    [Symbol.asyncDispose]: () => backlog[Symbol.asyncDispose](),
  };
}

function stateOf(request: FastifyRequest): RequestState {
  request.audit ??= {
    auditID: auditIdOf(request) ?? request.id,
    record: undefined,
    panicked: false,
    pending: undefined,
  };
  return request.audit;
}

function describe(request: FastifyRequest): Described {
  return describeRequest({
    method: request.method,
    route: request.is404 ? undefined : request.routeOptions.url,
    params: (request.params ?? {}) as Record<string, string>,
    query: (request.query ?? {}) as Record<string, unknown>,
  });
}

async function locate(options: AuditPluginOptions, request: FastifyRequest): Promise<Described> {
  const described = describe(request);
  if (options.locate === undefined || described.objectRef === undefined) return described;
  const objectRef = await options.locate(request, described);
  return { ...described, objectRef: objectRef ?? described.objectRef };
}

function auditRequest(
  options: AuditPluginOptions,
  request: FastifyRequest,
  { verb, objectRef }: Described,
  floor: boolean,
) {
  const userAgent = userAgentOf(request);
  return {
    verb,
    // As it was sent: the service may have had it routed elsewhere.
    requestURI: request.originalUrl,
    user: options.userOf(request),
    sourceIPs: sourceIPsOf(request),
    auditID: stateOf(request).auditID,
    floor,
    ...(objectRef === undefined ? {} : { objectRef }),
    ...(userAgent === undefined ? {} : { userAgent }),
  };
}

function isDenied(reply: FastifyReply): boolean {
  return reply.statusCode === 401 || reply.statusCode === 403;
}

/** Before the answer leaves; of one that goes on, when it ends. */
async function end(
  options: AuditPluginOptions,
  record: RequestRecord,
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<unknown> {
  const { longRunning = false, floor = false } = request.routeOptions.config.audit ?? {};
  const state = stateOf(request);
  const outcome = { code: reply.statusCode, ...options.outcomeOf?.(request, reply) };
  if (longRunning) await record.started(outcome);
  if (longRunning || (isStream(payload) && !floor)) {
    state.pending = outcome;
    if (reply.raw.destroyed) finishClosed(state, record, reply);
    return payload;
  }
  const bodies = bodiesOf(options, record, request, reply, payload);
  const annotations = { ...outcome.annotations, ...bodies.annotations };
  try {
    await record.finish({ ...outcome, ...bodies, annotations }, { panicked: state.panicked });
    return payload;
  } catch (thrown) {
    // Nobody will read it now, and whoever made it waits for its end.
    if (isStream(payload)) (payload as { destroy?: () => void }).destroy?.();
    return options.writeError(reply, thrown as ColonnadeError, request);
  }
}

/**
 * Ends that no hook sees: of a stream, and of a reply that was taken over (`hijack`). While a handler is still at work
 * for a client that has gone, its end is yet to come.
 */
function finishOnClose(state: RequestState, record: RequestRecord, reply: FastifyReply): void {
  reply.raw.once('close', () => {
    if (state.pending !== undefined || reply.sent) finishClosed(state, record, reply);
  });
}

function finishClosed(state: RequestState, record: RequestRecord, reply: FastifyReply): void {
  const outcome = state.pending ?? { code: reply.raw.statusCode };
  const message = reply.raw.writableFinished ? {} : { message: 'the connection was closed early' };
  // What is missing was told to the watch; there is no answer left to withhold.
  record.finish({ ...outcome, ...message }, { panicked: state.panicked }).catch(() => {});
}

function isStream(payload: unknown): boolean {
  const { pipe, getReader } = (payload ?? {}) as { pipe?: unknown; getReader?: unknown };
  return typeof pipe === 'function' || typeof getReader === 'function';
}

function bodiesOf(
  options: AuditPluginOptions,
  { level }: RequestRecord,
  request: FastifyRequest,
  reply: FastifyReply,
  response: unknown,
) {
  const { request: requestSchema, response: responseSchema } = request.routeOptions.config.audit ?? {};
  const body = options.bodyOf(request);
  return recordBodies({
    level,
    status: reply.statusCode,
    request: body,
    hasRequest: request.body !== undefined && request.body !== null,
    response,
    requestSchema,
    responseSchema,
  });
}

function guard<H extends ErrorHandler>(handler: H): H {
  const marked = (request: FastifyRequest, thrown: unknown): never => {
    stateOf(request).panicked = true;
    throw thrown;
  };
  return function guarded(this: FastifyInstance, error, request, reply) {
    try {
      const result = handler.call(this, error, request, reply);
      return result instanceof Promise ? result.catch((thrown) => marked(request, thrown)) : result;
    } catch (thrown) {
      return marked(request, thrown);
    }
  } as H;
}
