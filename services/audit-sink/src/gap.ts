import { createHash } from 'node:crypto';
import { AUDIT_FLOOR, type AuditBackend, type AuditEvent } from '@colonnade/contracts';

/** Why records are missing from a backend. */
export const GAP_REASONS = {
  webhook: [
    /** It was behind by more than its limit. */
    'backlog_limit',
  ],
  file: [
    /** Acknowledged before this file began: they stand in another one, or nowhere. */
    'before_this_file',
    /** Gone from the stream before the file had them; an operator accepted that. */
    'lost_from_stream',
    /** The stream was deleted and made anew. */
    'stream_recreated',
    /** The stream lost its end: numbers were given twice. */
    'stream_went_back',
    /** The file lost its end: it was cut from outside, or a power cut took what was not synced. */
    'file_shrank',
    /** The file was deleted, or was not there when the sink started. */
    'file_gone',
  ],
} as const satisfies Record<AuditBackend, readonly string[]>;

/** `removed_by_rotation` is no loss: rotated files went as they were asked to. */
type GapReason = (typeof GAP_REASONS)[AuditBackend][number] | 'removed_by_rotation';

/**
 * Stream sequences that a backend does not have, both ends included, and how many records they are: where nobody could look, each counts
 * as one, though a message may hold several.
 */
export type Gap = { backend: AuditBackend; reason: GapReason; from: number; to: number; count: number };

/**
 * The record that says what is missing: an event like any other, so that it stands where a reader looks. The same gap has the same
 * id every time.
 * @param time RFC 3339, microseconds
 */
export function gapEvent(gap: Gap, stream: string, time: string): AuditEvent {
  const { backend, reason, from, to, count } = gap;
  const digest = createHash('sha256').update([stream, backend, reason, from, to].join('\n')).digest('hex');
  return {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: `gap-${digest.slice(0, 32)}`,
    stage: 'ResponseComplete',
    requestURI: `audit-sink:${backend}`,
    verb: 'gap',
    user: { username: 'system:audit-sink', groups: ['system:colonnade'] },
    objectRef: { resource: 'auditevents', apiGroup: 'colonnade', name: `${from}-${to}` },
    responseStatus: { code: 500, status: 'Failure', reason },
    requestReceivedTimestamp: time,
    stageTimestamp: time,
    annotations: {
      [AUDIT_FLOOR]: 'true',
      'colonnade/backend': backend,
      'colonnade/gap-reason': reason,
      'colonnade/gap-from': String(from),
      'colonnade/gap-to': String(to),
      'colonnade/gap-count': String(count),
    },
  };
}
