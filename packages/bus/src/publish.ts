import { type Call, ColonnadeError, HEADER_TRACEPARENT, LIMITS, remainingMs } from '@colonnade/contracts';
import type { JetStreamClient, PubAck } from '@nats-io/jetstream';
import { headers } from '@nats-io/transport-node';
import { fromNatsError } from './wire-error.ts';

export type DurableMessage = {
  subject: string;
  /** `Nats-Msg-Id`: the same for every try of one message, different for every two messages. */
  msgId: string;
  payload: Uint8Array;
  /**
   * Only for a sender that may have lost an acknowledgement and sends again (the outbox relay). For everyone else a
   * duplicate means that a message id was used twice, so that this message was dropped.
   */
  allowDuplicate?: boolean;
};

/**
 * Publishes to a stream and waits for the server's acknowledgement that it is stored.
 * @throws ColonnadeError `bus_unavailable` (not stored, or not known to be), `too_large`, `duplicate` (the id was used before)
 */
export async function publishDurable(
  stream: JetStreamClient,
  message: DurableMessage,
  call: Call,
): Promise<{ seq: number; duplicate: boolean }> {
  if (message.payload.length > LIMITS.natsPayloadBytes) {
    throw new ColonnadeError(
      'too_large',
      `a message to ${message.subject} is over ${LIMITS.natsPayloadBytes} bytes`,
    );
  }
  const head = headers();
  head.set(HEADER_TRACEPARENT, call.traceparent);
  const ack = await publishOnce(stream, message, head, remainingMs(call));
  if (ack.duplicate && message.allowDuplicate !== true) {
    throw new ColonnadeError(
      'duplicate',
      `a message id of ${message.subject} was used twice; the message was dropped`,
    );
  }
  return { seq: ack.seq, duplicate: ack.duplicate };
}

async function publishOnce(
  stream: JetStreamClient,
  message: DurableMessage,
  head: ReturnType<typeof headers>,
  timeout: number,
): Promise<PubAck> {
  if (timeout < 1)
    throw new ColonnadeError('bus_unavailable', `${message.subject}: the time budget is used up`);
  try {
    return await stream.publish(message.subject, message.payload, {
      msgID: message.msgId,
      headers: head,
      timeout,
      retries: 1,
    });
  } catch (thrown) {
    const error = fromNatsError(thrown, message.subject);
    // Full, missing, or refused by the stream: for the caller it is one thing, "not stored".
    throw new ColonnadeError('bus_unavailable', `${message.subject}: not stored by the stream`, {
      cause: error.cause ?? error,
    });
  }
}
