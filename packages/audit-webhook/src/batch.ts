import type { ParsedEvent } from '@colonnade/audit-log';
import { truncateEvent } from './truncate.ts';

/** An event on its way to the webhook, as bytes; whoever sends it adds where it comes from. */
export type Item = { bytes: Uint8Array };

export type SizeLimits = {
  truncate: boolean;
  maxEventBytes: number;
  maxBatchEvents: number;
  maxBatchBytes: number;
};

const LEVELS_WITH_BODIES: ReadonlySet<string> = new Set(['Request', 'RequestResponse']);
const PREFIX = Buffer.from('{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[');
const COMMA = Buffer.from(',');
const SUFFIX = Buffer.from(']}');

/**
 * Fits an event into the limit as Kubernetes does: bodies go first; an event that is too large without them cannot be sent.
 * @returns undefined when it cannot
 */
export function fitEvent(bytes: Uint8Array, event: ParsedEvent, limits: SizeLimits): Uint8Array | undefined {
  if (!limits.truncate || bytes.length <= limits.maxEventBytes) return bytes;
  if (!LEVELS_WITH_BODIES.has(event.level)) return undefined;
  const cut = truncateEvent(bytes);
  return cut.length > limits.maxEventBytes ? undefined : cut;
}

/** Splits into lists that stay within the limits of a batch; an event that is larger alone goes alone. */
export function splitLists<T extends Item>(
  items: readonly T[],
  { maxBatchEvents, maxBatchBytes }: SizeLimits,
): T[][] {
  const lists: T[][] = [];
  let list: T[] = [];
  let size = 0;
  for (const item of items) {
    const full = list.length >= maxBatchEvents || size + item.bytes.length > maxBatchBytes;
    if (list.length > 0 && full) {
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
