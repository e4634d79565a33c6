import { ColonnadeError, type ErrorCode } from '@colonnade/contracts';

/** Every exit code there is, with what it means; the README's table is made from it. */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  notFound: 3,
  denied: 4,
  conflict: 5,
  unavailable: 6,
  refused: 7,
  differs: 8,
  interrupted: 130,
  brokenPipe: 141,
} as const;

export const EXIT_MEANING: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'done',
  unexpected: 'a fault nobody foresaw, here or in a service',
  usage: 'a wrong command line, profile or file; nothing was sent',
  notFound: 'what was named does not exist',
  denied: 'no valid token, or one that may not do this',
  conflict: 'it exists already, has changed meanwhile, or is in use; read it again',
  unavailable: 'a service does not answer, or takes no more for now; the same command may work later',
  refused: 'the content was refused: a value, a name, a size',
  differs: 'a check that ran to its end found something: a broken audit log, a service that is away',
  interrupted: 'interrupted with Ctrl-C',
  brokenPipe: 'whoever read the output has gone',
};

const OF_CODE: Readonly<Record<ErrorCode, keyof typeof EXIT>> = {
  bad_request: 'refused',
  unprocessable: 'refused',
  method_not_allowed: 'unexpected',
  unauthorized: 'denied',
  forbidden: 'denied',
  not_found: 'notFound',
  unknown_master: 'notFound',
  unknown_minion: 'notFound',
  already_exists: 'conflict',
  conflict: 'conflict',
  precondition_required: 'conflict',
  precondition_failed: 'conflict',
  idempotency_mismatch: 'conflict',
  duplicate: 'conflict',
  in_flight: 'unavailable',
  secret_immutable: 'conflict',
  value_invalid: 'refused',
  too_large: 'refused',
  unsupported_media_type: 'refused',
  overloaded: 'unavailable',
  rate_limited: 'unavailable',
  expired: 'denied',
  key_not_configured: 'unavailable',
  kid_unknown: 'unexpected',
  decrypt_failed: 'unexpected',
  kms_unavailable: 'unavailable',
  kms_refused: 'denied',
  bus_unavailable: 'unavailable',
  audit_unavailable: 'unavailable',
  redis_unavailable: 'unavailable',
  unavailable: 'unavailable',
  misconfigured: 'usage',
  internal: 'unexpected',
};

/** The exit code of anything thrown. */
export function exitCodeOf(thrown: unknown): number {
  return thrown instanceof ColonnadeError ? EXIT[OF_CODE[thrown.code] ?? 'unexpected'] : EXIT.unexpected;
}

/** What was typed, or a file of the command, is wrong; nothing was sent. */
export function usageError(message: string): ColonnadeError {
  return new ColonnadeError('misconfigured', message);
}
