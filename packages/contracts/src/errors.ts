/**
 * Every error code Colonnade uses between its parts. Stable: clients may switch on them.
 * HTTP puts the code into the problem document, NATS into the micro error header, Redis into the reply.
 */
export const ERROR_CODES = [
  'bad_request',
  /** Well formed, but its content is refused. */
  'unprocessable',
  'method_not_allowed',
  'unauthorized',
  'forbidden',
  'not_found',
  'unknown_master',
  'unknown_minion',
  'already_exists',
  'conflict',
  'precondition_required',
  'precondition_failed',
  'idempotency_mismatch',
  /** A message id was used before, so the stream did not take this message. */
  'duplicate',
  'in_flight',
  'secret_immutable',
  'value_invalid',
  'too_large',
  'unsupported_media_type',
  'overloaded',
  'rate_limited',
  'expired',
  'key_not_configured',
  'kid_unknown',
  'decrypt_failed',
  'kms_unavailable',
  'kms_refused',
  'bus_unavailable',
  /** No audit record could be stored, so nothing was done. */
  'audit_unavailable',
  'redis_unavailable',
  'unavailable',
  'misconfigured',
  'internal',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

const RETRYABLE: ReadonlySet<ErrorCode> = new Set([
  'in_flight',
  'overloaded',
  'rate_limited',
  'kms_unavailable',
  'bus_unavailable',
  'audit_unavailable',
  'redis_unavailable',
  'unavailable',
]);

export type ErrorOptions = {
  cause?: unknown;
  /** Where in the input the fault is, as a path such as `items.3.name`. */
  field?: string;
  /** Words of somebody else that whoever asks is to read, such as a hook's: they may hold anything, and are never recorded. */
  said?: string | undefined;
};

/** The one error class of Colonnade. Its message is safe to show: it never holds a secret or a stored value. */
export class ColonnadeError extends Error {
  override readonly name = 'ColonnadeError';
  readonly code: ErrorCode;
  readonly field: string | undefined;
  readonly said: string | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.field = options.field;
    this.said = options.said;
  }

  /** True when the same request may succeed later without being changed. */
  get retryable(): boolean {
    return RETRYABLE.has(this.code);
  }
}

export function isErrorCode(text: unknown): text is ErrorCode {
  return typeof text === 'string' && (ERROR_CODES as readonly string[]).includes(text);
}

/** Turns anything thrown into a ColonnadeError; what is not ours becomes `internal` with the original as cause. */
export function toColonnadeError(thrown: unknown): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  return new ColonnadeError('internal', 'an unexpected fault; the service log has the details', {
    cause: thrown,
  });
}
