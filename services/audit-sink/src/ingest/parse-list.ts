import { isUtf8 } from 'node:buffer';
import { readEvent, sliceItems } from '@colonnade/audit-log';
import { truncateEvent } from '@colonnade/audit-webhook';
import { ColonnadeError, type DeadLetterReason, LIMITS } from '@colonnade/contracts';
import { canonicalBytes, parseValue, type Value, ValueError, type ValueObject } from '@colonnade/value';
import { normalise, parseLoosely } from './normalise.ts';

/** One item of a list: an event as it is stored, or why it cannot be. */
export type IngestedItem =
  | { ok: true; payload: Uint8Array }
  | { ok: false; payload: Uint8Array; reason: DeadLetterReason; detail: string };

/** Objects of Kubernetes are nested deeper than anything of ours; an event stands two levels deep in its list. */
const MAX_DEPTH = 500;
const MAX_EVENT_BYTES = LIMITS.auditIngestEventBytes;
/** What a client of Kubernetes may have sent it and our strict parser refuses: one such body must not cost a whole list. */
const NORMALISED: ReadonlySet<string> = new Set([
  'duplicate_key',
  'lone_surrogate',
  'number_range',
  'too_deep',
]);

/**
 * Reads an audit.k8s.io/v1 EventList as kube-apiserver's webhook sends it: its items have neither kind nor apiVersion, the events
 * stored have both, as in Kubernetes' own log.
 * @throws ColonnadeError `bad_request`: no EventList of this version
 */
export function parseEventList(body: Uint8Array): IngestedItem[] {
  const list = parseOrNormalise(Buffer.from(body).toString('utf8'), isUtf8(body));
  const items = itemsOf(list.value);
  if (!list.normalised) return items.map((item) => ingestItem(item as Value, false));
  // Only the event at fault is changed; the others stay exactly what they are.
  return sliceItems(Buffer.from(body).toString('utf8')).map((text) => {
    const { value, normalised } = parseOrNormalise(text, true);
    return ingestItem(value, normalised);
  });
}

/** @throws ColonnadeError `bad_request`: no JSON */
function parseOrNormalise(text: string, utf8: boolean): { value: Value; normalised: boolean } {
  if (!utf8) throw new ColonnadeError('bad_request', 'not valid JSON: invalid_utf8');
  try {
    return { value: parseValue(text, { maxDepth: MAX_DEPTH }), normalised: false };
  } catch (thrown) {
    if (!(thrown instanceof ValueError)) throw thrown;
    if (NORMALISED.has(thrown.code))
      return { value: normalise(parseLoosely(text), MAX_DEPTH), normalised: true };
    throw new ColonnadeError('bad_request', `not valid JSON: ${thrown.code}`, { cause: thrown });
  }
}

/** @throws ColonnadeError `bad_request`: no EventList of this version */
function itemsOf(list: unknown): readonly unknown[] {
  if (typeof list !== 'object' || list === null) throw new ColonnadeError('bad_request', 'not an object');
  const { kind, apiVersion, items } = list as Record<string, unknown>;
  if (kind !== 'EventList') throw new ColonnadeError('bad_request', 'kind is not EventList');
  if (apiVersion !== 'audit.k8s.io/v1') {
    throw new ColonnadeError('bad_request', 'apiVersion is not audit.k8s.io/v1');
  }
  if (!Array.isArray(items ?? [])) throw new ColonnadeError('bad_request', 'items is not a list');
  return (items ?? []) as readonly unknown[];
}

function ingestItem(item: Value, normalised: boolean): IngestedItem {
  if (!isObject(item)) {
    return { ok: false, payload: canonicalBytes(item), reason: 'not_an_event', detail: 'not an object' };
  }
  const marks: ValueObject = normalised ? { 'colonnade/normalised': 'true' } : {};
  const annotations = { ...(isObject(item.annotations) ? item.annotations : {}), ...marks };
  const event: ValueObject = { kind: 'Event', apiVersion: 'audit.k8s.io/v1', ...item };
  if (Object.keys(annotations).length > 0) event.annotations = annotations;
  let payload = canonicalBytes(event);
  if (payload.length > MAX_EVENT_BYTES) payload = truncateEvent(payload);
  if (payload.length > MAX_EVENT_BYTES) {
    const detail = `over ${MAX_EVENT_BYTES} bytes without its bodies`;
    return { ok: false, payload, reason: 'too_large', detail };
  }
  const read = readEvent(payload);
  return read.ok ? { ok: true, payload } : { ok: false, payload, reason: read.reason, detail: read.detail };
}

function isObject(value: Value | undefined): value is ValueObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
