import { createHash } from 'node:crypto';
import type { Bus } from '@colonnade/bus';
import {
  auditDeadSubject,
  auditSubject,
  type Call,
  ColonnadeError,
  encode,
  LIMITS,
  startCall,
  zDeadLetter,
} from '@colonnade/contracts';
import type { Events } from '../events.ts';
import type { IngestedItem } from './parse-list.ts';

const AT_ONCE = 32;
/** Well below the half minute a kube-apiserver waits for its webhook. */
const BUDGET_MS = 5000;

/**
 * Stores every item of a list in AUDIT; what is no event is stored as a dead letter, and counted as one. The message id is a hash of the content, so
 * that a list which is sent again within the stream's window is stored once.
 * @throws ColonnadeError `bus_unavailable`: not all of it is stored; the sender tries again
 */
export async function storeItems(
  bus: Bus,
  items: readonly IngestedItem[],
  events: Events,
): Promise<{ stored: number; dead: number }> {
  if (!bus.isConnected()) throw new ColonnadeError('bus_unavailable', 'the bus is not connected');
  const call = startCall(BUDGET_MS);
  const queue = [...items];
  const work = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift())
      await storeItem(bus, item, call, events);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  const stored = items.filter(({ ok }) => ok).length;
  return { stored, dead: items.length - stored };
}

async function storeItem(bus: Bus, item: IngestedItem, call: Call, events: Events): Promise<void> {
  const msgId = `ingest:${createHash('sha256').update(item.payload).digest('hex')}`;
  const subject = auditSubject('audit-sink');
  if (item.ok) {
    await bus.publishDurable({ subject, msgId, payload: item.payload, allowDuplicate: true }, call);
    return;
  }
  const payload_b64 = Buffer.from(item.payload.subarray(0, LIMITS.auditDeadPayloadBytes)).toString('base64');
  const letter = { reason: item.reason, detail: item.detail, seq: 0, subject, payload_b64 };
  const payload = encode(zDeadLetter, letter);
  await bus.publishDurable(
    { subject: auditDeadSubject('ingest'), msgId, payload, allowDuplicate: true },
    call,
  );
  events.deadLetter('ingest', 0, item.reason, item.detail);
}
