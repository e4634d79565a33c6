import { randomUUID } from 'node:crypto';
import type { Value } from '@colonnade/value';
import type { AuditBackend } from './audit-sink.ts';
import { subjectOf } from './endpoints.ts';
import { buildOwnEvent, type CloudEvent } from './events.ts';

/** What audit-sink tells on the stream EVENTS when somebody has to look at the audit. */
export const AUDIT_ALERT = 'audit.alert';
export const AUDIT_ALERT_SUBJECT = subjectOf('events', AUDIT_ALERT);
/** CloudEvents `source` of it. */
export const AUDIT_SOURCE = 'urn:colonnade:audit';

/**
 * `backlog`: what waits for a backend is at 70 % of its limit; `backend_failing`: it takes nothing; `gap_refused`: records are gone
 * from the stream, and an operator has to accept that; `gap`: a backend will never have some records.
 */
export type AuditAlertKind = 'backlog' | 'backend_failing' | 'gap_refused' | 'gap';

/** An alert about one backend: `/audit/file`. */
export function buildAuditAlert(alert: AuditAlertKind, backend: AuditBackend, details: Value): CloudEvent {
  return buildOwnEvent({
    ...{ type: AUDIT_ALERT, id: randomUUID(), source: AUDIT_SOURCE, subject: `/audit/${backend}` },
    ...{ incarnation: '', data: { alert, backend, details } },
  });
}
