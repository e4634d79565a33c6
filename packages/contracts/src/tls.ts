import { randomUUID } from 'node:crypto';
import type { Value } from '@colonnade/value';
import { subjectOf } from './endpoints.ts';
import type { CloudEvent } from './events.ts';

/** What the rotation of TLS material tells on the stream EVENTS (seed 004). The subject ends in the same words. */
export const TLS_EVENT_TYPES = [
  'tls.secrets_synced',
  'tls.node_rotated',
  'tls.rollout_stopped',
  'tls.source_refused',
  'tls.expires_soon',
  'tls.recovered',
] as const;
export type TlsEventType = (typeof TLS_EVENT_TYPES)[number];

export const TLS_EVENTS_SUBJECTS = subjectOf('events', 'tls.>');
/** CloudEvents `source`: they have no place in the order of the estate's changes. */
export const TLS_SOURCE = 'urn:colonnade:tls';

/** `colonnade.events.v1.tls.node_rotated` */
export function tlsEventSubject(type: TlsEventType): string {
  return subjectOf('events', type);
}

/**
 * An event about one IngressTLS. Its clock is 0, for it is not of the estate.
 * @param about name and UID of the IngressTLS
 */
export function buildTlsEvent(
  type: TlsEventType,
  about: { name: string; uid: string },
  data: Value,
  time = new Date().toISOString(),
): CloudEvent {
  return {
    specversion: '1.0',
    id: randomUUID(),
    source: TLS_SOURCE,
    type: `colonnade.${type}.v1`,
    subject: about.name,
    time,
    datacontenttype: 'application/json',
    clock: '0',
    incarnation: about.uid,
    data,
  };
}
