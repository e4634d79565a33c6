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
  // A one-time token says nothing of who has it until it was used.
  const isStranger = principal === undefined || principal.workload?.kind === 'enrolment';
  const source = isStranger ? `address:${ip}` : `user:${principal.sub}`;
  const waitS = denials.count(source);
  if (waitS === undefined) return error;
  events.denialSuppressed({ kind: isStranger ? 'address' : 'user' });
  reply.header('retry-after', String(waitS));
  const who = isStranger ? 'without a valid token from this address' : 'that this user may not make';
  return new ColonnadeError('rate_limited', `too many requests ${who}`, { cause: error });
}
