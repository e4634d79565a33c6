import { z } from 'zod';
import { int } from './codec.ts';
import { subjectOf } from './endpoints.ts';

/**
 * Messages of AUDIT that a backend can never take, whole, with the reason. Full means: nothing more is given up, and
 * the message stays in AUDIT.
 */
export const AUDIT_DEAD_STREAM = 'AUDIT_DEAD';
export const AUDIT_DEAD_SUBJECTS = subjectOf('audit-dead', '>');

/** Heads of the file's hash chain. Old ones make room for new ones; nobody may delete or purge. */
export const AUDIT_ANCHOR_STREAM = 'AUDIT_ANCHORS';
export const AUDIT_ANCHOR_SUBJECTS = subjectOf('audit-anchors', '>');

/** The two backends of seed 001; each has a durable consumer of this name. */
export const AUDIT_BACKENDS = ['file', 'webhook'] as const;
export type AuditBackend = (typeof AUDIT_BACKENDS)[number];

export function auditDeadSubject(from: AuditBackend | 'ingest'): string {
  return subjectOf('audit-dead', from);
}

export function auditAnchorSubject(backend: AuditBackend): string {
  return subjectOf('audit-anchors', backend);
}

/** The chain's head after the line of one stream sequence. */
export const zAuditAnchor = z.strictObject({
  seq: int({ min: 0 }),
  /** When AUDIT was made: sequences of two streams are never compared. */
  stream_created: z.string(),
  chain: z.string().regex(/^[0-9a-f]{64}$/u),
  /** Name of the file that holds the line, without its folder. */
  file: z.string(),
  time: z.string(),
});
export type AuditAnchor = z.infer<typeof zAuditAnchor>;
