import {
  ColonnadeError,
  clipText,
  decode,
  type ErrorCode,
  encode,
  isErrorCode,
  zWireError,
} from '@colonnade/contracts';
import { errors, type MsgHdrs } from '@nats-io/transport-node';

/** The micro protocol's headers: a number, and the stable code as text. */
const HEADER_CODE = 'Nats-Service-Error-Code';
const HEADER_ERROR = 'Nats-Service-Error';

const CLIENT_FAULTS: ReadonlySet<ErrorCode> = new Set([
  'bad_request',
  'unprocessable',
  'unauthorized',
  'forbidden',
  'not_found',
  'unknown_master',
  'unknown_minion',
  'already_exists',
  'conflict',
  'value_invalid',
  'too_large',
  'rate_limited',
  'kms_refused',
  'kid_unknown',
  'decrypt_failed',
]);

/** The numeric code of the micro protocol: 400 for the caller's fault, 500 for ours. */
export function microCode(code: ErrorCode): number {
  return CLIENT_FAULTS.has(code) ? 400 : 500;
}

export function errorBody(error: ColonnadeError): Uint8Array {
  return encode(zWireError, { code: error.code, message: clipText(error.message, 2048) });
}

/** The error a server answered with, or undefined when the answer is none. */
export function readWireError(headers: MsgHdrs | undefined, data: Uint8Array): ColonnadeError | undefined {
  const text = headers?.get(HEADER_ERROR);
  if (!text && !headers?.get(HEADER_CODE)) return undefined;
  try {
    const body = decode(zWireError, data);
    return new ColonnadeError(body.code as ErrorCode, body.message);
  } catch {
    return new ColonnadeError(
      text !== undefined && isErrorCode(text) ? text : 'internal',
      'the service answered with an error',
    );
  }
}

/** Turns what the NATS client throws into our errors: total, everything unknown is `bus_unavailable`. */
export function fromNatsError(thrown: unknown, what: string): ColonnadeError {
  if (thrown instanceof ColonnadeError) return thrown;
  if (thrown instanceof errors.RequestError && thrown.isNoResponders()) {
    return new ColonnadeError('unavailable', `${what}: no service answers there`, { cause: thrown });
  }
  if (thrown instanceof errors.NoRespondersError) {
    return new ColonnadeError('unavailable', `${what}: no service answers there`, { cause: thrown });
  }
  if (
    thrown instanceof errors.TimeoutError ||
    (thrown instanceof Error && thrown.cause instanceof errors.TimeoutError)
  ) {
    return new ColonnadeError('unavailable', `${what}: no answer within the time budget`, { cause: thrown });
  }
  return new ColonnadeError('bus_unavailable', `${what}: the bus does not carry the message`, {
    cause: thrown,
  });
}
