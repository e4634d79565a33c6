import {
  type ColonnadeError,
  type ErrorCode,
  encodeText,
  PROBLEM_MEDIA_TYPE,
  type Problem,
  zProblem,
} from '@colonnade/contracts';
import { ValueError } from '@colonnade/value';
import type { FastifyReply } from 'fastify';

type Row = { status: number; title: string };

/** The one table from error code to HTTP status. */
export const PROBLEMS: Readonly<Record<ErrorCode, Row>> = {
  bad_request: { status: 400, title: 'Bad request' },
  unauthorized: { status: 401, title: 'Not authenticated' },
  forbidden: { status: 403, title: 'Not allowed' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  already_exists: { status: 409, title: 'Already exists' },
  conflict: { status: 409, title: 'In conflict with the estate' },
  in_flight: { status: 409, title: 'The same request is being handled' },
  secret_immutable: { status: 409, title: "A secret's value cannot be changed" },
  precondition_failed: { status: 412, title: 'Changed meanwhile' },
  too_large: { status: 413, title: 'Too large' },
  unsupported_media_type: { status: 415, title: 'Not JSON' },
  unprocessable: { status: 422, title: 'Content refused' },
  value_invalid: { status: 422, title: 'Value cannot be kept' },
  unknown_master: { status: 422, title: 'Unknown master' },
  unknown_minion: { status: 422, title: 'Unknown minion' },
  idempotency_mismatch: { status: 422, title: 'Idempotency-Key used for another request' },
  precondition_required: { status: 428, title: 'Precondition required' },
  rate_limited: { status: 429, title: 'Too many requests' },
  kms_refused: { status: 403, title: 'Refused by the key service' },
  key_not_configured: { status: 500, title: 'PillarEncryptionKeyNotConfigured' },
  kid_unknown: { status: 500, title: 'Sealed with an unknown key' },
  decrypt_failed: { status: 500, title: 'Cannot be opened' },
  audit_unavailable: { status: 500, title: 'Cannot be put on record' },
  misconfigured: { status: 500, title: 'Misconfigured' },
  internal: { status: 500, title: 'Internal fault' },
  overloaded: { status: 503, title: 'Overloaded' },
  duplicate: { status: 500, title: 'A message id was used twice' },
  kms_unavailable: { status: 503, title: 'Key service unavailable' },
  bus_unavailable: { status: 503, title: 'Bus unavailable' },
  redis_unavailable: { status: 503, title: 'Redis unavailable' },
  unavailable: { status: 503, title: 'Unavailable' },
  expired: { status: 504, title: 'Took too long' },
};

const RETRY_AFTER_S = '1';

/** The problem document of an error (RFC 9457). Nothing of a cause is shown, except the place of a fault in a text. */
export function toProblem(error: ColonnadeError, requestId: string): Problem {
  const { status, title } = PROBLEMS[error.code];
  return {
    type: `urn:colonnade:error:${error.code}`,
    title,
    status,
    detail: error.message.toWellFormed(),
    said: error.said?.toWellFormed(),
    code: error.code,
    instance: `urn:uuid:${requestId}`,
    field: error.field?.toWellFormed(),
    position: positionOf(error.cause),
  };
}

function positionOf(cause: unknown): Problem['position'] {
  if (!(cause instanceof ValueError)) return undefined;
  const { offset, line, column } = cause;
  return offset === undefined || line === undefined || column === undefined
    ? undefined
    : { offset, line, column };
}

/** Turns a reply into a problem answer and returns its body; headers of a success are taken back. */
export function writeProblem(reply: FastifyReply, error: ColonnadeError, requestId: string): string {
  for (const header of ['etag', 'location', 'content-length']) reply.removeHeader(header);
  reply.code(PROBLEMS[error.code].status).header('content-type', PROBLEM_MEDIA_TYPE);
  if (error.code === 'unauthorized') reply.header('www-authenticate', 'Bearer realm="colonnade"');
  if (error.retryable && !reply.hasHeader('retry-after')) reply.header('retry-after', RETRY_AFTER_S);
  return encodeText(zProblem, toProblem(error, requestId));
}
