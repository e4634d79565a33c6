import { createHash } from 'node:crypto';
import type { Bus } from '@colonnade/bus';
import {
  type Call,
  type ColonnadeError,
  clipText,
  type DeadLetterReason,
  encode,
  eventsDeadSubject,
  LIMITS,
  serviceEventSubject,
  zDeadLetter,
  zServiceEventType,
} from '@colonnade/contracts';
import type { ServiceRecord } from '@colonnade/estate-store';
import { canonicalText, type Value } from '@colonnade/value';
import { marksSecrets } from './own-types.ts';

/** Fields of an event that are kept where its data is not. */
const PLAIN = ['id', 'type', 'subject', 'time'] as const;
const DETAIL_CHARS = 512;

/**
 * Stores an event that was refused, for whoever looks after its service (`colonnade events dead`). The same one, refused again
 * at once, is one letter.
 * @param body as it came; it may be no event at all
 * @throws ColonnadeError `bus_unavailable`: it is not stored
 */
export async function buryServiceEvent(
  bus: Pick<Bus, 'publishDurable'>,
  service: ServiceRecord,
  body: Value,
  { reason, error }: { reason: DeadLetterReason; error: ColonnadeError },
  call: Call,
): Promise<void> {
  const whole = Buffer.from(canonicalText(marksSecrets(service) ? withoutData(body) : body));
  const kept = whole.subarray(0, LIMITS.serviceEventDeadBytes);
  const letter = {
    reason,
    detail: clipText(error.message, DETAIL_CHARS),
    seq: 0,
    subject: serviceEventSubject(service.id, typeIn(body)),
    payload_b64: kept.toString('base64'),
    ...(call.auditID === undefined ? {} : { audit_id: call.auditID }),
  };
  const digest = createHash('sha256').update(`${service.id}\n${reason}\n`).update(canonicalText(body));
  await bus.publishDurable(
    {
      subject: eventsDeadSubject(service.id),
      msgId: `dead:${digest.digest('hex')}`,
      payload: encode(zDeadLetter, letter),
      allowDuplicate: true,
    },
    call,
  );
}

function fieldsOf(body: Value): Readonly<Record<string, Value>> {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {};
}

/** A secret may be under any name in it: only what an envelope has is kept, and only as text. */
function withoutData(body: Value): Value {
  const fields = fieldsOf(body);
  return Object.fromEntries(
    PLAIN.flatMap((name) => {
      const value = fields[name];
      return typeof value === 'string' ? [[name, clipText(value, LIMITS.nameBytes)]] : [];
    }),
  );
}

function typeIn(body: Value): string {
  const { type } = fieldsOf(body);
  return zServiceEventType.safeParse(type).data ?? '-';
}
