import { ColonnadeError } from '@colonnade/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DenialLimit } from '../auth/denial-limit.ts';
import type { Events } from '../events.ts';
import { PROBLEMS } from './problem.ts';

/**
 * Counts an error that denies access against whoever asks. Beyond the limit it becomes `rate_limited`, which gets no
 * record of its own (see audit.ts); one record a minute says how many there were.
 */
export function limitDenials(
  denials: DenialLimit,
  events: Pick<Events, 'denialSuppressed'>,
  error: ColonnadeError,
  request: FastifyRequest,
  reply: FastifyReply,
): ColonnadeError {
  if (![401, 403].includes(PROBLEMS[error.code].status)) return error;
  const { principal, ip } = request;
  const source = principal === undefined ? `address:${ip}` : `user:${principal.sub}`;
  const waitS = denials.count(source);
  if (waitS === undefined) return error;
  events.denialSuppressed({ kind: principal === undefined ? 'address' : 'user' });
  reply.header('retry-after', String(waitS));
  const who =
    principal === undefined ? 'without a valid token from this address' : 'that this user may not make';
  return new ColonnadeError('rate_limited', `too many requests ${who}`, { cause: error });
}
