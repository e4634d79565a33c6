import { Readable } from 'node:stream';
import { type BULK_MEDIA_TYPES, type Call, ColonnadeError, encodeText, zNothing } from '@colonnade/contracts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Principal } from '../auth/authenticate.ts';
import { decodeInput } from './body.ts';
import type { Route, RouteSpec } from './route.ts';

/** A format of a streamed body. */
export type BulkFormat = keyof typeof BULK_MEDIA_TYPES;

/** What a handler of a streamed route gets. `body` is there where the route takes one. */
export type StreamedInput<Q> = {
  principal: Principal;
  query: Q;
  body: { stream: Readable; mediaType: string } | undefined;
  call: Call;
};

type StreamedSpec<Q extends z.ZodType, R extends z.ZodType> = Pick<
  RouteSpec<z.ZodType, Q, z.ZodType, R>,
  'method' | 'url' | 'permission' | 'scope'
> & {
  query: Q;
  /** Whether the route takes a body of these media types, of any size, as it arrives. */
  accepts?: readonly string[];
  /** Media types of an answer that is a stream. */
  answers?: readonly string[];
  /** Of an answer that is no stream. */
  response: R;
  handle: (
    input: StreamedInput<z.output<Q>>,
  ) => Promise<
    { status: number; body: z.output<R> } | { status: number; mediaType: string; stream: Readable }
  >;
};

/** A route whose body or answer is too large to be held: it goes by as it is read, and no audit record holds it. */
export function defineStreamedRoute<Q extends z.ZodType, R extends z.ZodType>(
  spec: StreamedSpec<Q, R>,
): Route {
  const { method, url, permission, scope, accepts } = spec;
  return {
    ...{ method, url, permission, scope, accepts },
    // An import changes the estate, an export carries what is sealed: on record whatever the policy says, without bodies.
    audit: { floor: true },
    docs: {
      ...{ query: spec.query, body: zNothing, response: spec.response, idempotency: 'ignored' },
      mediaType: 'application/json',
      streams: spec.answers,
    },
    async run(request, reply, principal, call) {
      const query = decodeInput(spec.query, request.query);
      const answer = await spec
        .handle({ principal, query, body: bodyOf(request, accepts), call })
        .finally(() => letGo(request, reply));
      reply.code(answer.status);
      if ('stream' in answer) {
        reply.header('content-type', answer.mediaType);
        return answer.stream;
      }
      reply.header('content-type', 'application/json; charset=utf-8');
      return encodeText(spec.response, answer.body);
    },
  };
}

/** Of a body that nobody reads to its end the rest is dropped as it comes, so that the client gets to read the answer. */
function letGo({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (raw.complete) return;
  reply.header('connection', 'close');
  raw.resume();
}

function bodyOf(
  request: FastifyRequest,
  accepts: readonly string[] | undefined,
): StreamedInput<unknown>['body'] {
  if (accepts === undefined) return undefined;
  if (!(request.body instanceof Readable)) throw notAccepted(accepts);
  return { stream: request.body, mediaType: mediaTypeOf(request) };
}

/** Lets the routes that take them have bodies of these types, unread. */
export function acceptStreams(app: FastifyInstance, mediaTypes: readonly string[]): void {
  app.addContentTypeParser([...mediaTypes], async (request: FastifyRequest, payload: Readable) => {
    const { accepts } = request.routeOptions.config;
    const coding = request.headers['content-encoding'] ?? 'identity';
    if (accepts?.includes(mediaTypeOf(request)) && coding === 'identity') return payload;
    throw notAccepted(accepts ?? ['application/json']);
  });
}

function mediaTypeOf(request: FastifyRequest): string {
  return (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

function notAccepted(accepts: readonly string[]): ColonnadeError {
  const why = `the body must be ${accepts.join(' or ')} in UTF-8, not compressed`;
  return new ColonnadeError('unsupported_media_type', why);
}
