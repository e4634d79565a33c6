import { microTime } from '@colonnade/audit';
import type { Bus, Delivery } from '@colonnade/bus';
import {
  type AuditBackend,
  auditDeadSubject,
  auditSubject,
  encode,
  startCall,
  zAuditEvent,
  zDeadLetter,
} from '@colonnade/contracts';
import type { Events } from './events.ts';
import { type Gap, gapEvent } from './gap.ts';

const BUDGET_MS = 5000;

/**
 * Makes the function that writes down what a backend is not given: as an event of AUDIT, so that the file and the webhook
 * both have it, or among the dead letters when AUDIT is full. It returns when the record is stored.
 * @throws ColonnadeError `bus_unavailable`: it is stored nowhere, so nothing may be skipped
 */
export function createGapRecorder(bus: Bus, backend: AuditBackend, events: Events) {
  return async (skipped: readonly Delivery[], stream: string): Promise<void> => {
    const [first, last] = [skipped[0], skipped.at(-1)];
    if (first === undefined || last === undefined) return;
    const gap: Gap = {
      backend,
      reason: 'backlog_limit',
      from: first.seq,
      to: last.seq,
      count: skipped.length,
    };
    const event = encode(zAuditEvent, gapEvent(gap, stream, microTime()));
    const msgId = `gap:${backend}:${stream}:${gap.from}:${gap.to}`;
    const store = (subject: string, payload: Uint8Array) =>
      bus.publishDurable({ subject, msgId, payload, allowDuplicate: true }, startCall(BUDGET_MS));
    const subject = auditSubject('audit-sink');
    try {
      await store(subject, event);
    } catch {
      const letter = { reason: 'gap', detail: `${gap.from}-${gap.to}`, seq: gap.to, subject } as const;
      const payload_b64 = Buffer.from(event).toString('base64');
      await store(auditDeadSubject(backend), encode(zDeadLetter, { ...letter, payload_b64 }));
    }
    events.gapWritten(gap);
  };
}
