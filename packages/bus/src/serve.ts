import {
  type BusUser,
  type Call,
  ColonnadeError,
  decode,
  type Endpoint,
  encode,
  HEADER_AUDIT_ID,
  HEADER_BUDGET_MS,
  HEADER_REPLY_KEY,
  HEADER_TRACEPARENT,
  HEADER_USER,
  isAuditId,
  LIMITS,
  remainingMs,
  replyPrefixes,
  startCall,
  toColonnadeError,
} from '@colonnade/contracts';
import { type ServiceMsg, Svcm } from '@nats-io/services';
import {
  headers,
  type NatsConnection,
  type Subscription,
  type SubscriptionOptions,
} from '@nats-io/transport-node';
import type { z } from 'zod';
import type { BusLogger } from './logger.ts';
import type { AnswerKeys } from './sealed-answer.ts';
import { errorBody, microCode } from './wire-error.ts';

/** An endpoint with its handler; made by `route`, so that the types of the two agree. */
export type Route = { endpoint: Endpoint; handle: (message: unknown, call: Call) => Promise<unknown> };

export function route<Req extends z.ZodType, Res extends z.ZodType>(
  endpoint: Endpoint<Req, Res>,
  handle: (message: z.output<Req>, call: Call) => Promise<z.output<Res>>,
): Route {
  return { endpoint, handle: (message, call) => handle(message as z.output<Req>, call) };
}

export type ServiceDescription = {
  name: BusUser;
  version: string;
  description: string;
  /** Requests handled at once; more are answered `overloaded`. */
  maxInFlight?: number;
  /** Called for every request: the micro library's own `num_errors` does not count answered errors. */
  onHandled?: (outcome: { endpoint: string; code: string; durationMs: number }) => void;
};

export type ServedService = AsyncDisposable & { inFlight(): number; isStopped(): boolean };

const MAX_BUDGET_MS = 60_000;

/**
 * Runs a NATS micro service in the queue group of its own name. Disposing drains: requests under way are answered. A request
 * whose time is up before its handler begins, or before its answer is written, is `unavailable`: nobody waits for it.
 */
export async function serve(
  connection: NatsConnection,
  service: ServiceDescription,
  routes: readonly Route[],
  keys: AnswerKeys,
  logger: BusLogger,
): Promise<ServedService> {
  const { name, version, description } = service;
  const guarded = refuseForeignReplies(connection, replyPrefixes(name), logger);
  const micro = await new Svcm(guarded).add({ name, version, description, queue: name });
  const inFlight = new Set<Promise<void>>();
  for (const { endpoint, handle } of routes) {
    if (endpoint.server !== name)
      throw new Error(`${endpoint.name} is served by ${endpoint.server}, not by ${name}`);
    micro.addEndpoint(endpoint.name, {
      subject: endpoint.subject,
      queue: name,
      handler: (error, message) => {
        if (error) return;
        const work = answer(service, endpoint, handle, message, inFlight.size, keys, logger).catch(
          (thrown) => {
            // Nobody waits for this promise: what it throws would end the process.
            logger.error({ endpoint: endpoint.name, err: thrown }, 'request could not be answered');
          },
        );
        inFlight.add(work);
        void work.finally(() => inFlight.delete(work));
      },
    });
  }
  await connection.flush();
  return {
    inFlight: () => inFlight.size,
    isStopped: () => micro.isStopped,
    async [Symbol.asyncDispose]() {
      await micro.stop();
      await Promise.allSettled(inFlight);
    },
  };
}

async function answer(
  service: ServiceDescription,
  endpoint: Endpoint,
  handle: Route['handle'],
  message: ServiceMsg,
  busy: number,
  keys: AnswerKeys,
  logger: BusLogger,
): Promise<void> {
  const startedMs = performance.now();
  // Its time counts from here. What came with it is handled first, and may take long.
  const call = callOf(message);
  let code = 'ok';
  try {
    if (busy >= (service.maxInFlight ?? 1000))
      throw new ColonnadeError('overloaded', `${service.name} has too many requests`);
    await nextTurn();
    requireTime(call, endpoint);
    const replyKey = endpoint.sealedAnswer ? replyKeyOf(message) : undefined;
    if (replyKey !== undefined) keys.check(replyKey);
    const input = endpoint.wire?.readRequest(message.data) ?? decode(endpoint.request, message.data);
    const result = await handle(input, call);
    requireTime(call, endpoint);
    const output =
      endpoint.wire?.writeResponse(result as never) ?? encode(endpoint.response, result as never);
    if (output.length > LIMITS.natsPayloadBytes)
      throw new ColonnadeError('too_large', 'the answer is too large for one message');
    respond(endpoint, message, output, keys, replyKey);
  } catch (thrown) {
    const error = toColonnadeError(thrown);
    code = error.code;
    if (code === 'internal') logger.error({ endpoint: endpoint.name, err: thrown }, 'request failed');
    message.respondError(microCode(error.code), error.code, errorBody(error));
  }
  service.onHandled?.({ endpoint: endpoint.name, code, durationMs: performance.now() - startedMs });
}

function respond(
  endpoint: Endpoint,
  message: ServiceMsg,
  output: Uint8Array,
  keys: AnswerKeys,
  replyKey: string | undefined,
): void {
  if (replyKey === undefined) return void message.respond(output);
  const sealed = keys.seal(replyKey, endpoint.subject, output);
  const head = headers();
  head.set(HEADER_REPLY_KEY, keys.publicKey);
  message.respond(sealed, { headers: head });
}

let turn: Promise<void> | undefined;

/** One for all that came together: their answers then leave in one write, and each write wakes the server. */
function nextTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}

/** Whoever asked has given up; to work on for them would take the time of those who wait. @throws ColonnadeError `unavailable` */
function requireTime(call: Call, { name }: Endpoint): void {
  if (remainingMs(call) < 1) throw new ColonnadeError('unavailable', `${name}: the time budget is used up`);
}

function replyKeyOf(message: ServiceMsg): string {
  return message.headers?.get(HEADER_REPLY_KEY) ?? '';
}

function callOf(message: ServiceMsg): Call {
  const budget = Number(message.headers?.get(HEADER_BUDGET_MS));
  const budgetMs = Number.isFinite(budget) && budget > 0 ? Math.min(budget, MAX_BUDGET_MS) : MAX_BUDGET_MS;
  const call = startCall(budgetMs, message.headers?.get(HEADER_TRACEPARENT));
  const auditID = message.headers?.get(HEADER_AUDIT_ID);
  const user = userOf(message);
  return {
    ...call,
    ...(isAuditId(auditID) ? { auditID } : {}),
    ...(user === undefined ? {} : { user }),
  };
}

function userOf(message: ServiceMsg): string | undefined {
  try {
    return decodeURIComponent(message.headers?.get(HEADER_USER) ?? '') || undefined;
  } catch {
    return undefined;
  }
}

/**
 * The connection as the micro library sees it: a request whose reply subject is not an inbox of an allowed caller is
 * dropped before any handler runs, the library's own `$SRV` handlers included. Without this, a caller could set
 * reply=`$JS.API.STREAM.PURGE.AUDIT`, or the subject of a stream, and let the service publish there with its rights.
 */
function refuseForeignReplies(
  connection: NatsConnection,
  prefixes: readonly string[],
  logger: BusLogger,
): NatsConnection {
  const subscribe = (subject: string, options: SubscriptionOptions = {}): Subscription => {
    const inner = options.callback;
    if (inner === undefined) return connection.subscribe(subject, options);
    return connection.subscribe(subject, {
      ...options,
      callback: (error, message) => {
        if (error === null && !prefixes.some((prefix) => message.reply?.startsWith(prefix))) {
          logger.warn({ subject: message.subject }, 'request with a foreign reply subject dropped');
          return;
        }
        inner(error, message);
      },
    });
  };
  return new Proxy(connection, {
    get(target, property) {
      if (property === 'subscribe') return subscribe;
      const member: unknown = Reflect.get(target, property, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
