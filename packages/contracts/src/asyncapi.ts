import { z } from 'zod';
import { AUDIT_SUBJECTS, zAuditEvent, zAuditEventList } from './audit.ts';
import { AUDIT_ALERT, AUDIT_ALERT_SUBJECT } from './audit-alerts.ts';
import { AUDIT_ANCHOR_SUBJECTS, AUDIT_DEAD_SUBJECTS, zAuditAnchor } from './audit-sink.ts';
import { zDeadLetter } from './dead-letters.ts';
import { EVENT_TYPES, eventSubject, zCloudEvent } from './events.ts';
import { KEY_EVENT_TYPES } from './key-events.ts';
import { ENDPOINTS } from './permissions.ts';
import { EVENTS_DEAD_SUBJECTS, SERVICE_EVENTS_SUBJECTS } from './service-events.ts';
import { TLS_EVENT_TYPES } from './tls.ts';

type Json = Record<string, unknown>;

/** AsyncAPI 3.0 of the bus: every endpoint with its request and answer, every event, the audit stream. */
export function buildAsyncApi(): Json {
  const channels: Json = {};
  const operations: Json = {};
  for (const endpoint of ENDPOINTS) {
    channels[endpoint.name] = channel(endpoint.subject, {
      request: message(endpoint.request),
      answer: message(endpoint.response),
    });
    operations[endpoint.name] = {
      action: 'receive',
      channel: { $ref: `#/channels/${endpoint.name}` },
      summary: `Served by ${endpoint.server}; asked by ${endpoint.callers.join(', ')}.${endpoint.sealedAnswer ? ' The answer is sealed to the process that asked.' : ''}`,
      messages: [{ $ref: `#/channels/${endpoint.name}/messages/request` }],
      reply: { messages: [{ $ref: `#/channels/${endpoint.name}/messages/answer` }] },
    };
  }
  const events = [
    ...[...EVENT_TYPES, ...TLS_EVENT_TYPES, ...KEY_EVENT_TYPES].map((type) => ({
      type,
      subject: eventSubject(type),
    })),
    { type: AUDIT_ALERT, subject: AUDIT_ALERT_SUBJECT },
  ];
  for (const { type, subject } of events) {
    const name = `event-${type}`;
    channels[name] = channel(subject, { event: message(zCloudEvent) });
    operations[name] = { action: 'send', channel: { $ref: `#/channels/${name}` } };
  }
  channels.audit = channel(AUDIT_SUBJECTS, {
    record: message(zAuditEvent),
    records: message(zAuditEventList),
  });
  operations.audit = { action: 'send', channel: { $ref: '#/channels/audit' } };
  channels['audit-dead'] = channel(AUDIT_DEAD_SUBJECTS, { letter: message(zDeadLetter) });
  operations['audit-dead'] = { action: 'send', channel: { $ref: '#/channels/audit-dead' } };
  channels['events-external'] = channel(SERVICE_EVENTS_SUBJECTS, { event: message(zCloudEvent) });
  operations['events-external'] = { action: 'send', channel: { $ref: '#/channels/events-external' } };
  channels['events-dead'] = channel(EVENTS_DEAD_SUBJECTS, { letter: message(zDeadLetter) });
  operations['events-dead'] = { action: 'send', channel: { $ref: '#/channels/events-dead' } };
  channels['audit-anchors'] = channel(AUDIT_ANCHOR_SUBJECTS, { anchor: message(zAuditAnchor) });
  operations['audit-anchors'] = { action: 'send', channel: { $ref: '#/channels/audit-anchors' } };
  return {
    asyncapi: '3.0.0',
    info: { title: 'Colonnade on NATS', version: '1', license: { name: 'Apache-2.0' } },
    defaultContentType: 'application/json',
    channels,
    operations,
  };
}

function channel(address: string, messages: Json): Json {
  return { address, messages };
}

function message(schema: z.ZodType): Json {
  return { payload: jsonSchemaOf(schema) };
}

/** The wire form of a schema: `int()` is a JSON integer, a value is anything. */
function jsonSchemaOf(schema: z.ZodType): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'bigint') jsonSchema.type = 'integer';
    },
  });
  return rest;
}
