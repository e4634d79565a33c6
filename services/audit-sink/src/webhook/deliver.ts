import { applyFilter, type EventFilter, readMessage } from '@colonnade/audit-log';
import {
  fitEvent,
  type Item,
  type SendOptions,
  type SizeLimits,
  sendList,
  splitLists,
} from '@colonnade/audit-webhook';
import { type Delivery, DONE, type Verdict } from '@colonnade/bus';
import type { DeadLetterReason } from '@colonnade/contracts';
import type { Bury } from '../dead-letters.ts';
import type { Events } from '../events.ts';

export type DeliverOptions = {
  limits: SizeLimits;
  filter?: EventFilter | undefined;
};

type Deps = { bury: Bury; send: SendOptions; events: Events };

/** An event of a message, with its place in it. */
type MessageItem = Item & { delivery: Delivery; index: number };

/** What is left to do for one message: events the webhook does not have yet, and dead letters to store. */
type Progress = { open: number; burials: (() => Promise<void>)[] };

const NAME = 'webhook';
/** What was broken off comes again at once: to be skipped, or to the next replica. */
const AGAIN: Verdict = { kind: 'later', delayMs: 1 };

/** Makes the function that brings one batch to the webhook and gives each message its verdict. */
export function createDeliverer(options: DeliverOptions, deps: Deps) {
  return async (
    batch: readonly Delivery[],
    stream: string,
    signal: AbortSignal,
  ): Promise<readonly Verdict[]> => {
    const progress = new Map(batch.map((d): [Delivery, Progress] => [d, { open: 0, burials: [] }]));
    const lose = (
      delivery: Delivery,
      index: number,
      bytes: Uint8Array,
      reason: DeadLetterReason,
      detail: string,
    ) => {
      const bury = () => deps.bury({ ...delivery, payload: bytes }, { reason, detail, stream, index });
      progress.get(delivery)?.burials.push(bury);
    };
    const items = batch.flatMap((delivery) => prepare(delivery, options, lose, deps.events));
    for (const { delivery } of items) stepOf(progress, delivery).open += 1;
    for (const list of splitLists(items, options.limits)) {
      const sent = await sendList(list, deps.send, signal).catch(() => undefined);
      if (sent === undefined) break;
      for (const { delivery } of list) stepOf(progress, delivery).open -= 1;
      for (const { item, status } of sent.refused) {
        const { delivery, index, bytes } = item;
        lose(delivery, index, bytes, 'refused_by_webhook', `HTTP ${status}`);
      }
      report(deps.events, list);
    }
    return batch.map((delivery) => verdictOf(stepOf(progress, delivery)));
  };
}

function stepOf(progress: ReadonlyMap<Delivery, Progress>, delivery: Delivery): Progress {
  return progress.get(delivery) as Progress;
}

function verdictOf({ open, burials }: Progress): Verdict {
  if (open > 0) return AGAIN;
  if (burials.length === 0) return DONE;
  return {
    kind: 'poison',
    bury: async () => {
      for (const bury of burials) await bury();
    },
  };
}

/** The events of one message that are to be sent; those that never can be are lost here. */
function prepare(
  delivery: Delivery,
  { limits, filter }: DeliverOptions,
  lose: (
    delivery: Delivery,
    index: number,
    bytes: Uint8Array,
    reason: DeadLetterReason,
    detail: string,
  ) => void,
  events: Events,
): MessageItem[] {
  const items: MessageItem[] = [];
  for (const [index, read] of readMessage(delivery.payload).entries()) {
    if (!read.ok) {
      lose(delivery, index, read.bytes, read.reason, read.detail);
      continue;
    }
    const taken = applyFilter(read, filter);
    if (taken === undefined) {
      events.counted(NAME, 'filtered', 1);
      continue;
    }
    const bytes = fitEvent(taken.bytes, taken.event, limits);
    if (bytes !== undefined) items.push({ delivery, index, bytes });
    else {
      const detail = `over ${limits.maxEventBytes} bytes without its bodies`;
      lose(delivery, index, read.bytes, 'too_large', detail);
    }
  }
  return items;
}

function report(events: Events, list: readonly MessageItem[]): void {
  events.counted(NAME, 'taken', list.length);
  const oldest = list[0]?.delivery.storedAtNs ?? 0n;
  events.batchTaken(NAME, list.length, Date.now() - Number(oldest / 1_000_000n));
}
