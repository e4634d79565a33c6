import { z } from 'zod';
import { int } from './codec.ts';

/** Why a message is a dead letter: of the audit's backends, and of events that services outside handed in. */
export const DEAD_LETTER_REASONS = [
  'not_json',
  'not_an_event',
  'too_large',
  'refused_by_webhook',
  'gap',
  /** Of a type that its service may not publish. */
  'type_refused',
  /** Its data does not fit the schema of its type. */
  'schema_refused',
] as const;
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

/** A message that nobody could take, in `AUDIT_DEAD` or `EVENTS_DEAD`; who it is of, the last word of its subject says. */
export const zDeadLetter = z.strictObject({
  reason: z.enum(DEAD_LETTER_REASONS),
  /** More for a person, such as `HTTP 422`; never the content. */
  detail: z.string(),
  /** Where it stood in its stream; 0 when it never got there. */
  seq: int({ min: 0 }),
  /** Where it stood, or would have. */
  subject: z.string(),
  payload_b64: z.string(),
  /** Of the request it came with. */
  audit_id: z.string().optional(),
});
export type DeadLetter = z.infer<typeof zDeadLetter>;
