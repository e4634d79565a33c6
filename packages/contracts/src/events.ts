import { createHash } from 'node:crypto';
import { z } from 'zod';
import { zValue } from './codec.ts';
import { subjectOf } from './endpoints.ts';
import type { KeyEventType } from './key-events.ts';
import type { TlsEventType } from './tls.ts';

export const EVENTS_STREAM = 'EVENTS';
export const EVENTS_SUBJECTS = subjectOf('events', '>');

/** Types of events: aggregate and what happened to it. The NATS subject ends in the same words. */
export const EVENT_TYPES = [
  'pillar.created',
  'pillar.updated',
  'pillar.deleted',
  /** Another name; its data also says which it was. */
  'pillar.renamed',
  /** Another target; its data also says which it was. */
  'pillar.moved',
  'collection.created',
  'collection.updated',
  'collection.deleted',
  'minion.registered',
  'minion.updated',
  'minion.deleted',
  /** To another master; its pillars have events of their own. */
  'minion.moved',
  'minion.inventory-received',
  'minion.inventory-failed',
  'minion.inventory-deleted',
  'master.registered',
  'master.updated',
  'master.deleted',
  'template.created',
  'template.updated',
  'template.deleted',
  'task.created',
  'task.state_changed',
  'task.deleted',
  /** Many pillars at once: their scopes, in parts, and no event for each. */
  'estate.imported',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** `colonnade.events.v1.pillar.created`; of what a service tells of itself, `colonnade.events.v1.tls.node_rotated` */
export function eventSubject(type: EventType | KeyEventType | TlsEventType): string {
  return subjectOf('events', type);
}

/**
 * CloudEvents 1.0. `clock` and `incarnation` are extension attributes: the order of the estate's changes.
 * CloudEvents integers have 32 bits, so the clock is decimal text.
 */
export const zCloudEvent = z.strictObject({
  specversion: z.literal('1.0'),
  /** `<incarnation>.<clock>.<index>`: the same for every delivery of one event. */
  id: z.string(),
  source: z.string(),
  /** `colonnade.pillar.created.v1` */
  type: z.string(),
  subject: z.string(),
  time: z.string(),
  datacontenttype: z.literal('application/json'),
  clock: z.string().regex(/^[0-9]+$/u),
  incarnation: z.string(),
  data: zValue,
});
export type CloudEvent = z.infer<typeof zCloudEvent>;

/** CloudEvents `source` of everything the estate publishes. */
export const ESTATE_SOURCE = 'urn:colonnade:estate';

/** The subject an event is told on: that of its type. Whoever may publish on some subjects of EVENTS may tell no other types. */
export function subjectOfEvent({ type }: Pick<CloudEvent, 'type'>): string {
  return subjectOf('events', type.replace(/^colonnade\.(.+)\.v\d+$/u, '$1'));
}

/** CloudEvents `type`: `colonnade.pillar.created.v1` */
export function cloudEventType(type: EventType): string {
  return `colonnade.${type}.v1`;
}

/** What a service tells on EVENTS of itself. */
export type OwnEvent = Pick<CloudEvent, 'id' | 'source' | 'type' | 'subject' | 'incarnation' | 'data'> & {
  /** When it happened, RFC 3339; now unless given. */
  time?: string;
};

/** An event that is not of the estate: its clock is 0, for it has no place in the order of the estate's changes. */
export function buildOwnEvent({ time = new Date().toISOString(), type, ...event }: OwnEvent): CloudEvent {
  return {
    ...{ specversion: '1.0', datacontenttype: 'application/json', clock: '0', time },
    ...event,
    type: `colonnade.${type}.v1`,
  };
}

/** `Nats-Msg-Id` of an event: the same for every try of one event, whoever publishes it. */
export function eventMsgId(event: Pick<CloudEvent, 'source' | 'id'>): string {
  return createHash('sha256').update(event.source).update('\n').update(event.id).digest('hex');
}

export function isEventType(text: string): text is EventType {
  return (EVENT_TYPES as readonly string[]).includes(text);
}
