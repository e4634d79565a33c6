import type { Value } from '@colonnade/value';
import { z } from 'zod';
import { subjectOf } from './endpoints.ts';
import type { CloudEvent } from './events.ts';

/**
 * Events of services that are no part of Colonnade. They have a stream of their own: one that is full, or that somebody
 * fills, holds up nothing of the estate.
 */
export const SERVICE_EVENTS_STREAM = 'EVENTS_EXTERNAL';
const AREA = 'events-external';
export const SERVICE_EVENTS_SUBJECTS = subjectOf(AREA, '>');

/** What was handed in and refused, with the reason; of each service the newest. */
export const EVENTS_DEAD_STREAM = 'EVENTS_DEAD';
export const EVENTS_DEAD_SUBJECTS = subjectOf('events-dead', '>');

const TYPE = /^[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*$/u;

/** A type of events, such as `order.placed`: part of a NATS subject. What Colonnade itself publishes begins with `colonnade.`. */
export const zServiceEventType = z
  .string()
  .max(128, 'an event type is at most 128 characters')
  .regex(TYPE, 'an event type is words of a–z 0–9 _ - joined by dots, and begins with a letter')
  .refine((type) => !/^colonnade(?:\.|$)/u.test(type), 'types that begin with "colonnade" are its own');

/** `colonnade.events-external.v1.shop.order.placed` */
export function serviceEventSubject(service: string, type: string): string {
  return subjectOf(AREA, `${service}.${type}`);
}

/** `colonnade.events-dead.v1.shop` */
export function eventsDeadSubject(service: string): string {
  return subjectOf('events-dead', service);
}

/** CloudEvents `source` of what a service publishes; with the event's id it makes `Nats-Msg-Id`. */
export function serviceSource(service: string): string {
  return `urn:colonnade:service:${service}`;
}

/**
 * The event as it stands in the stream. Its clock is 0, for it is not of the estate.
 * @param from the service, and the enrolment its identity came of
 */
export function buildServiceEvent(
  from: { service: string; enrolment: string },
  event: { id: string; type: string; subject: string; time: string; data: Value },
): CloudEvent {
  return {
    specversion: '1.0',
    ...event,
    source: serviceSource(from.service),
    datacontenttype: 'application/json',
    clock: '0',
    incarnation: from.enrolment,
  };
}
