import type { Bus } from '@colonnade/bus';
import {
  buildServiceEvent,
  type Call,
  ColonnadeError,
  type EventPublish,
  encode,
  eventMsgId,
  LIMITS,
  serviceEventSubject,
  zCloudEvent,
} from '@colonnade/contracts';
import type { ServiceRecord } from '@colonnade/estate-store';
import { canonicalText, type Value } from '@colonnade/value';
import type { Schemas } from '../templates/schemas.ts';
import { typesOf } from './own-types.ts';
import { EventRefusal } from './refusal.ts';

/**
 * Holds an event against what its service may publish.
 * @param caller as `Schemas` counts callers
 * @throws EventRefusal another's type, too large, not as its schema has it | ColonnadeError `overloaded`, `unavailable`
 */
export async function checkServiceEvent(
  schemas: Pick<Schemas, 'faultsOf'>,
  caller: string,
  service: ServiceRecord,
  { type, data = null }: EventPublish,
): Promise<void> {
  const own = typesOf(service).find((one) => one.type === type);
  if (own === undefined) {
    const how = 'an admin adds it with PUT /services/{id}';
    throw new EventRefusal(
      'type_refused',
      'forbidden',
      `type: the service may not publish it; ${how}`,
      'type',
    );
  }
  if (Buffer.byteLength(canonicalText(data)) > LIMITS.serviceEventBytes) {
    const what = `data: is over ${LIMITS.serviceEventBytes} bytes`;
    throw new EventRefusal('too_large', 'too_large', what, 'data');
  }
  if (own.schema === undefined) return;
  const [fault] = await faultsOf(schemas, caller, own.schema, data);
  if (fault === undefined) return;
  const field = `data${fault.path.replaceAll('/', '.')}`;
  throw new EventRefusal('schema_refused', 'unprocessable', `${field}: ${fault.message}`, field);
}

/** What takes too long with this schema is refused by it: the same event would again. */
async function faultsOf(schemas: Pick<Schemas, 'faultsOf'>, caller: string, schema: Value, data: Value) {
  try {
    return await schemas.faultsOf(caller, schema, data);
  } catch (thrown) {
    if (!(thrown instanceof ColonnadeError) || thrown.code !== 'unprocessable') throw thrown;
    throw new EventRefusal('schema_refused', 'unprocessable', `data: ${thrown.message}`, 'data');
  }
}

/**
 * Stores an event in its stream, and returns when the stream has it: not by the outbox, whose order an event that has no place in
 * the estate's would hold up. The same event again is stored once.
 * @throws ColonnadeError `bus_unavailable`
 */
export async function publishServiceEvent(
  bus: Pick<Bus, 'publishDurable' | 'isConnected'>,
  from: { service: string; enrolment: string },
  { id, type, subject = '', time = new Date().toISOString(), data = null }: EventPublish,
  call: Call,
): Promise<{ duplicate: boolean }> {
  // The client would keep it and send it after a reconnect, when its service has been told otherwise.
  if (!bus.isConnected()) throw new ColonnadeError('bus_unavailable', 'not connected to NATS');
  const event = buildServiceEvent(from, { id, type, subject, time, data });
  return bus.publishDurable(
    {
      subject: serviceEventSubject(from.service, type),
      msgId: eventMsgId(event),
      payload: encode(zCloudEvent, event),
      allowDuplicate: true,
    },
    call,
  );
}
