import { microTime } from '@colonnade/audit';
import { readMessage } from '@colonnade/audit-log';
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
    const counts = skipped.map(({ seq, payload }) => ({ seq, count: readMessage(payload).length }));
    for (const { from, to, count } of runsOf(counts)) {
      const gap: Gap = { backend, reason: 'backlog_limit', from, to, count };
      await storeGap(bus, gap, stream);
      events.gapWritten(gap);
    }
  };
}

type Run = { from: number; to: number; count: number };

/** Messages that come again may come between others: each record is about sequences without a hole. */
export function runsOf(messages: readonly { seq: number; count: number }[]): Run[] {
  const runs: Run[] = [];
  for (const { seq, count } of messages) {
    const last = runs.at(-1);
    if (last === undefined || seq !== last.to + 1) runs.push({ from: seq, to: seq, count });
    else {
      last.to = seq;
      last.count += count;
    }
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
