import { ColonnadeError, type DeadLetterReason, type ErrorCode } from '@colonnade/contracts';

/** An event that can never be taken as it is: it becomes a dead letter. */
export class EventRefusal extends ColonnadeError {
  readonly reason: DeadLetterReason;

  constructor(reason: DeadLetterReason, code: ErrorCode, message: string, field: string) {
    super(code, message, { field });
    this.reason = reason;
  }
}

/** Why a request to publish leaves a dead letter; undefined: it may well be taken later, or is no event's fault. */
export function refusalReason(thrown: unknown): DeadLetterReason | undefined {
  if (thrown instanceof EventRefusal) return thrown.reason;
  // The envelope: what is no event of any type.
  const isEnvelope = thrown instanceof ColonnadeError && thrown.code === 'unprocessable';
  return isEnvelope ? 'not_an_event' : undefined;
}
