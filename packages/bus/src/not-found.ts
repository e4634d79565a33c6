import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';

const CODES: ReadonlySet<number> = new Set([
  JetStreamApiCodes.StreamNotFound,
  JetStreamApiCodes.ConsumerNotFound,
  JetStreamApiCodes.NoMessageFound,
]);

/**
 * Whether the server has said that a stream, a consumer or a message is not there. Any other failure (no rights, no answer in time,
 * JetStream just starting) says nothing of the kind: whoever took it for that would make anew what is there.
 */
export function isNotFound(thrown: unknown): boolean {
  return thrown instanceof JetStreamApiError && CODES.has(thrown.code);
}

/** For `catch`: what is not there is undefined, anything else is thrown on. */
export function undefinedIfNotFound(thrown: unknown): undefined {
  if (!isNotFound(thrown)) throw thrown;
}
