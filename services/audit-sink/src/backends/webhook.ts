import { type Bus, type Delivery, DONE, type Verdict } from '@colonnade/bus';
import { auditWebhookConsumer, LIMITS } from '@colonnade/contracts';
import { type Bury, createBury } from '../dead-letters.ts';
import type { Events } from '../events.ts';
import { createGapRecorder } from '../gap-recorder.ts';
import { readEvent } from '../read-event.ts';
import { fitEvent, type Item, type SizeLimits, splitBySize } from '../webhook/batch.ts';
import type { ReloadingPoster } from '../webhook/reloading-poster.ts';
import { type SendOptions, sendList } from '../webhook/send.ts';
import { createThrottle } from '../webhook/throttle.ts';
import type { Backend, EventFilter } from './backend.ts';

export type WebhookBackendOptions = {
  poster: ReloadingPoster;
  batchMaxSize: number;
  batchMaxWaitMs: number;
  throttleQps: number;
  throttleBurst: number;
  initialBackoffMs: number;
  limits: SizeLimits;
  filter?: EventFilter | undefined;
};

export type WebhookBackend = Backend & {
  /** Gives up what stands up to here in the stream, on record; what is being sent is broken off. */
  skipTo(seq: number): void;
  /** Tells it what is acknowledged. Until that reaches where it skips to, nothing newer is sent. */
  acknowledged(seq: number): void;
};

const NAME = 'webhook';
/** While skipping, payloads are not kept, so a gap record covers many. */
const SKIP_BATCH = { maxMessages: 4096, maxBytes: 16 * 1024 * 1024, waitMs: 1000, fillMs: 0 };
const SKIP_LATER: Verdict = { kind: 'later', delayMs: 500 };

/**
 * Kubernetes' audit webhook: EventLists in the order of the stream, one request at a time, each record at least once. A
 * webhook that is away or slow is waited for; what it has not got stays in the stream.
 */
export function createWebhookBackend(
  options: WebhookBackendOptions,
  deps: { bus: Bus; events: Events },
): WebhookBackend {
  const { bus, events } = deps;
  const bury = createBury(bus, NAME, events);
  const recordGap = createGapRecorder(bus, NAME, events);
  const sendOptions = createSendOptions(options, events);
  let stream: string | undefined;
  let skipSeq = 0;
  let ackedSeq = 0;
  let skipping = new AbortController();
  return {
    name: NAME,
    consumer: auditWebhookConsumer,
    batch: () =>
      ackedSeq < skipSeq
        ? SKIP_BATCH
        : {
            maxMessages: options.batchMaxSize,
            maxBytes: options.limits.maxBatchBytes + LIMITS.natsPayloadBytes,
            waitMs: 5000,
            fillMs: options.batchMaxWaitMs,
          },
    async run() {
      stream = (await bus.consumerState(auditWebhookConsumer)).stream.created;
    },
    async process(batch, signal) {
      const at = stream ?? '';
      const skipped = batch.filter(({ seq }) => seq <= skipSeq);
      if (skipped.length > 0) await recordGap(skipped, at);
      const verdicts = new Map<Delivery, Verdict>(skipped.map((d) => [d, DONE]));
      // A list that waits for a dead webhook must not stand before what is to be skipped.
      if (ackedSeq < skipSeq) return batch.map((d) => verdicts.get(d) ?? SKIP_LATER);
      const rest = batch.filter((d) => !verdicts.has(d));
      const items = prepare(rest, options, verdicts, bury, at, events);
      const stop = AbortSignal.any([signal, skipping.signal]);
      for (const list of splitBySize(items, options.limits.maxBatchBytes)) {
        const sent = await sendList(list, sendOptions, stop).catch((error: unknown) => error);
        settle(list, sent, verdicts, bury, at);
        if (sent instanceof Error) break;
        report(events, list);
      }
      // What was broken off comes again at once: to be skipped, or to the next replica.
      return batch.map((d) => verdicts.get(d) ?? { kind: 'later', delayMs: 1 });
    },
    async shutdown() {
      options.poster[Symbol.dispose]();
    },
    check() {
      if (stream === undefined) throw new Error('the stream has no consumer for the webhook');
    },
    acknowledged(seq) {
      ackedSeq = seq;
    },
    skipTo(seq) {
      if (seq <= skipSeq) return;
      skipSeq = seq;
      skipping.abort();
      skipping = new AbortController();
    },
  };
}

function createSendOptions(options: WebhookBackendOptions, events: Events): SendOptions {
  let failing = false;
  return {
    post: options.poster.post,
    throttle: createThrottle(options.throttleQps, options.throttleBurst),
    initialBackoffMs: options.initialBackoffMs,
    onAnswer: events.webhookAnswered,
    onFailure(error, attempt) {
      // The certificate, the token or the address may have been replaced.
      options.poster.reload();
      if (failing) return events.batchFailed(NAME, error, attempt);
      failing = true;
      events.backendFailing(NAME, error);
    },
    onSuccess() {
      if (failing) events.backendWorks(NAME);
      failing = false;
    },
  };
}

/** Turns messages into what is sent; those that never can be, or need not be, get their verdict here. */
function prepare(
  batch: readonly Delivery[],
  options: WebhookBackendOptions,
  verdicts: Map<Delivery, Verdict>,
  bury: Bury,
  stream: string,
  events: Events,
): Item[] {
  const items: Item[] = [];
  for (const delivery of batch) {
    const read = readEvent(delivery.payload);
    if (!read.ok) {
      const { reason, detail } = read;
      verdicts.set(delivery, { kind: 'poison', bury: () => bury(delivery, reason, detail, stream) });
      continue;
    }
    if (options.filter !== undefined && !options.filter(read.event)) {
      events.counted(NAME, 'filtered', 1);
      verdicts.set(delivery, DONE);
      continue;
    }
    const item = fitEvent(delivery, read.event, options.limits);
    if (item !== undefined) items.push(item);
    else {
      const detail = `over ${options.limits.maxEventBytes} bytes without its bodies`;
      verdicts.set(delivery, { kind: 'poison', bury: () => bury(delivery, 'too_large', detail, stream) });
    }
  }
  return items;
}

function settle(
  list: readonly Item[],
  sent: unknown,
  verdicts: Map<Delivery, Verdict>,
  bury: Bury,
  stream: string,
): void {
  if (sent instanceof Error) return;
  const { refused } = sent as Awaited<ReturnType<typeof sendList>>;
  for (const { delivery } of list) verdicts.set(delivery, DONE);
  for (const { item, status } of refused) {
    const { delivery } = item;
    const detail = `HTTP ${status}`;
    verdicts.set(delivery, {
      kind: 'poison',
      bury: () => bury(delivery, 'refused_by_webhook', detail, stream),
    });
  }
}

function report(events: Events, list: readonly Item[]): void {
  events.counted(NAME, 'taken', list.length);
  const oldest = list[0]?.delivery.storedAtNs ?? 0n;
  events.batchTaken(NAME, list.length, Date.now() - Number(oldest / 1_000_000n));
}
