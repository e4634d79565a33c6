import {
  type Call,
  ColonnadeError,
  childTraceparent,
  decode,
  type Endpoint,
  encode,
  HEADER_AUDIT_ID,
  HEADER_BUDGET_MS,
  HEADER_REPLY_KEY,
  HEADER_TRACEPARENT,
  HEADER_USER,
  LIMITS,
  remainingMs,
} from '@colonnade/contracts';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import type { z } from 'zod';
import type { AnswerKeys } from './sealed-answer.ts';
import { fromNatsError, readWireError } from './wire-error.ts';

/**
 * Asks an endpoint and decodes its answer. Waits as long as the call has time left; never retries.
 * @throws ColonnadeError the server's own, or `unavailable` (nobody there, no answer in time), `bus_unavailable`, `too_large`,
 *   `internal` (an answer that is none)
 */
export async function request<Req extends z.ZodType, Res extends z.ZodType>(
  connection: NatsConnection,
  endpoint: Endpoint<Req, Res>,
  message: z.output<Req>,
  call: Call,
  keys: AnswerKeys,
): Promise<z.output<Res>> {
  const payload = endpoint.wire?.writeRequest(message) ?? encode(endpoint.request, message);
  if (payload.length > LIMITS.natsPayloadBytes) {
    throw new ColonnadeError(
      'too_large',
      `a request to ${endpoint.name} is over ${LIMITS.natsPayloadBytes} bytes`,
    );
  }
  const timeout = remainingMs(call);
  if (timeout < 1) throw new ColonnadeError('unavailable', `${endpoint.name}: the time budget is used up`);
  const head = headers();
  head.set(HEADER_TRACEPARENT, childTraceparent(call.traceparent));
  head.set(HEADER_BUDGET_MS, String(timeout));
  if (call.auditID !== undefined) head.set(HEADER_AUDIT_ID, call.auditID);
  if (call.user !== undefined) head.set(HEADER_USER, encodeURIComponent(call.user.toWellFormed()));
  if (endpoint.sealedAnswer) head.set(HEADER_REPLY_KEY, keys.publicKey);
  const answer = await connection
    .request(endpoint.subject, payload, { timeout, headers: head })
    .catch((thrown) => {
      throw fromNatsError(thrown, endpoint.name);
    });
  const error = readWireError(answer.headers, answer.data);
  if (error !== undefined) throw error;
  try {
    const body = endpoint.sealedAnswer
      ? keys.open(answer.headers?.get(HEADER_REPLY_KEY) ?? '', endpoint.subject, answer.data)
      : answer.data;
    return endpoint.wire?.readResponse(body) ?? decode(endpoint.response, body);
  } catch (cause) {
    // Whoever asked has done nothing wrong.
    throw new ColonnadeError('internal', `${endpoint.name} answered with something malformed`, { cause });
  }
}
