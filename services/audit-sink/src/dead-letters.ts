import type { Bus, Delivery } from '@colonnade/bus';
import {
  type AuditBackend,
  auditDeadSubject,
  type DeadLetterReason,
  encode,
  LIMITS,
  startCall,
  zDeadLetter,
} from '@colonnade/contracts';
import type { Events } from './events.ts';

/** Stores a message that a backend can never take. @throws ColonnadeError `bus_unavailable`: it is not stored */
export type Bury = (
  delivery: Delivery,
  why: {
    reason: DeadLetterReason;
    detail: string;
    /** When AUDIT was made; with it and the sequence a letter has the same id at every try. */
    stream: string;
    /** Which event of its message. */
    index: number;
  },
) => Promise<void>;

const BUDGET_MS = 5000;

export function createBury(bus: Bus, backend: AuditBackend, events: Events): Bury {
  return async ({ seq, subject, payload }, { reason, detail, stream, index }) => {
    const kept = payload.subarray(0, LIMITS.auditDeadPayloadBytes);
    const letter = {
      reason,
      detail: kept.length === payload.length ? detail : `${detail}; cut at ${kept.length} bytes`,
      seq,
      subject,
      payload_b64: Buffer.from(kept).toString('base64'),
    };
    await bus.publishDurable(
      {
        subject: auditDeadSubject(backend),
        // The same for every try: whoever dies between this and the acknowledgement does it again.
        msgId: `${backend}:${stream}:${seq}:${index}`,
        payload: encode(zDeadLetter, letter),
        allowDuplicate: true,
      },
      startCall(BUDGET_MS),
    );
    events.deadLetter(backend, seq, reason, detail);
  };
}
