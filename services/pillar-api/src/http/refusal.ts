import type { AuditPlugin } from '@colonnade/audit';
import type { ColonnadeError } from '@colonnade/contracts';
import { canonicalText } from '@colonnade/value';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Principal } from '../auth/authenticate.ts';
import type { ParsedBody } from './body.ts';
import { fromHttpError } from './foreign-errors.ts';

/** A request that was refused, before its handler or by it. */
export type Refusal = {
  principal: Principal;
  error: ColonnadeError;
  /** As text; empty where none was read, since it was too large or of a foreign type. What is no UTF-8 comes as U+FFFD. */
  body: string;
};

/** What a route does about a refusal before it is answered. @returns undefined: nothing */
export type OnRefused = (refusal: Refusal) => (() => Promise<void>) | undefined;

/**
 * Lets a route do what it does about a refusal: it is put on record first, as what a handler does.
 * @returns undefined: nothing is to be done; what is to be answered: what was thrown, or why it could not be done
 */
export function tellRefusal(
  audit: Pick<AuditPlugin, 'begin'>,
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> | undefined {
  const { principal } = request;
  const { onRefused } = request.routeOptions.config;
  if (onRefused === undefined || principal === undefined) return undefined;
  const error = fromHttpError(thrown);
  const tell = onRefused({ principal, error, body: bodyTextOf(request) });
  if (tell === undefined) return undefined;
  return audit
    .begin(request, reply)
    .then(tell)
    .then(
      () => thrown,
      (failed: unknown) => failed,
    );
}

function bodyTextOf({ body, unparsed }: FastifyRequest): string {
  const parsed = body as ParsedBody | undefined;
  return parsed === undefined ? (unparsed?.toString('utf8') ?? '') : canonicalText(parsed.tree);
}
