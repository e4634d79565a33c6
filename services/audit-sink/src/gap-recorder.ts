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
 * Makes the function that writes down what a backend is not given: as events of AUDIT, so that the file and the webhook
 * both have them, or among the dead letters when AUDIT is full. It returns when the records are stored.
 * @throws ColonnadeError `bus_unavailable`: it is stored nowhere, so nothing may be skipped
 */
export function createGapRecorder(bus: Bus, backend: AuditBackend, events: Events) {
  return async (skipped: readonly Delivery[], stream: string): Promise<void> => {
    for (const { from, to } of runsOf(skipped.map(({ seq }) => seq))) {
      const gap: Gap = { backend, reason: 'backlog_limit', from, to, count: to - from + 1 };
      await storeGap(bus, gap, stream);
      events.gapWritten(gap);
    }
  };
}

/** Messages that come again may come between others: each record is about sequences without a hole. */
export function runsOf(seqs: readonly number[]): { from: number; to: number }[] {
  const runs: { from: number; to: number }[] = [];
  for (const seq of seqs) {
    const last = runs.at(-1);
    if (last !== undefined && seq === last.to + 1) last.to = seq;
    else runs.push({ from: seq, to: seq });
  }
  return runs;
}

async function storeGap(bus: Bus, gap: Gap, stream: string): Promise<void> {
  const { backend, from, to } = gap;
  const event = encode(zAuditEvent, gapEvent(gap, stream, microTime()));
  const msgId = `gap:${backend}:${stream}:${from}:${to}`;
  const store = (subject: string, payload: Uint8Array) =>
    bus.publishDurable({ subject, msgId, payload, allowDuplicate: true }, startCall(BUDGET_MS));
  const subject = auditSubject('audit-sink');
  try {
    await store(subject, event);
  } catch {
    const letter = { reason: 'gap', detail: `${from}-${to}`, seq: to, subject } as const;
    const payload_b64 = Buffer.from(event).toString('base64');
    await store(auditDeadSubject(backend), encode(zDeadLetter, { ...letter, payload_b64 }));
  }
}
