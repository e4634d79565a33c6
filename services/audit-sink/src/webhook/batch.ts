import type { Delivery } from '@colonnade/bus';
import type { ParsedEvent } from '../backends/backend.ts';
import { truncateEvent } from './truncate.ts';

/** An event on its way to the webhook, as bytes. */
export type Item = { delivery: Delivery; bytes: Uint8Array };

export type SizeLimits = { truncate: boolean; maxEventBytes: number; maxBatchBytes: number };

const LEVELS_WITH_BODIES: ReadonlySet<string> = new Set(['Request', 'RequestResponse']);
const PREFIX = Buffer.from('{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[');
const COMMA = Buffer.from(',');
const SUFFIX = Buffer.from(']}');

/**
 * Fits an event into the limit as Kubernetes does: bodies go first; an event that is too large without them cannot be sent.
 * @returns undefined when it cannot
 */
export function fitEvent(delivery: Delivery, event: ParsedEvent, limits: SizeLimits): Item | undefined {
  const { payload } = delivery;
  if (!limits.truncate || payload.length <= limits.maxEventBytes) return { delivery, bytes: payload };
  if (!LEVELS_WITH_BODIES.has(event.level)) return undefined;
  const bytes = truncateEvent(payload);
  return bytes.length > limits.maxEventBytes ? undefined : { delivery, bytes };
}

/** Splits into lists that stay within the batch limit; an event that is larger alone goes alone. */
export function splitBySize(items: readonly Item[], maxBatchBytes: number): Item[][] {
  const lists: Item[][] = [];
  let list: Item[] = [];
  let size = 0;
  for (const item of items) {
    if (list.length > 0 && size + item.bytes.length > maxBatchBytes) {
      lists.push(list);
      list = [];
      size = 0;
    }
    list.push(item);
    size += item.bytes.length;
  }
  return list.length > 0 ? [...lists, list] : lists;
}

/** The body of one request: an EventList of the events' own bytes. */
export function eventListBody(items: readonly Item[]): Buffer {
  const parts: Uint8Array[] = [PREFIX];
  for (const [i, { bytes }] of items.entries()) {
    if (i > 0) parts.push(COMMA);
    parts.push(bytes);
  }
  parts.push(SUFFIX);
  return Buffer.concat(parts);
}
