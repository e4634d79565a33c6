import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ColonnadeError } from '@colonnade/contracts';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { fromHttpError } from './foreign-errors.ts';

/** A path that no route has. */
const NOWHERE = '/nowhere';

/**
 * Requests that Node or the router would answer past all hooks. They are sent through them like any other, to a path that
 * no route has, so whoever made them is authenticated, held to his rate and put on record first.
 */
export type Strays = {
  /** What Fastify calls for a path that it cannot decode, or an id that is too long. */
  take(app: FastifyInstance, error: unknown, raw: IncomingMessage, response: ServerResponse): void;
  /** Why there is no route for this one; undefined: it is no stray. */
  reasonOf(request: FastifyRequest): ColonnadeError | undefined;
};

export function createStrays(): Strays {
  const reasons = new WeakMap<IncomingMessage, ColonnadeError>();
  return {
    take(app, error, raw, response) {
      reasons.set(raw, fromHttpError(error));
      // Where Fastify itself keeps it, see `request.originalUrl`.
      Object.assign(raw, { originalUrl: raw.url, url: NOWHERE });
      app.routing(raw, response);
    },
    reasonOf: ({ raw }) => reasons.get(raw),
  };
}

/** What Node answers itself, or with the end of the connection, unless somebody listens. */
export function adoptStrays(app: FastifyInstance, strays: Strays): void {
  // An expectation that nobody knows may be left unmet (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (raw, response) => app.routing(raw, response));
  app.server.on('connect', (raw, stream) => {
    const socket = stream as Socket;
    const response = new ServerResponse(raw);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    // Node has let go of this connection, its errors and its end included.
    socket.on('error', () => socket.destroy());
    response.on('finish', () => socket.destroySoon());
    strays.take(app, new ColonnadeError('method_not_allowed', 'this is no proxy'), raw, response);
  });
}

/** Node would refuse it before anybody sees it (RFC 9112, 3.2). @throws ColonnadeError `bad_request` */
export function requireHost({ raw, headers }: FastifyRequest): void {
  if (raw.httpVersion !== '1.1' || headers.host !== undefined) return;
  throw new ColonnadeError('bad_request', 'the request has no Host', { field: 'Host' });
}
