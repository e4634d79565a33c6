import { createThrottle, type ReloadingPoster, type SendOptions } from '@colonnade/audit-webhook';
import { type Bus, type Delivery, DONE, type Verdict } from '@colonnade/bus';
import { auditWebhookConsumer, LIMITS } from '@colonnade/contracts';
import { createBury } from '../dead-letters.ts';
import type { Events } from '../events.ts';
import { createGapRecorder } from '../gap-recorder.ts';
import { createDeliverer, type DeliverOptions } from '../webhook/deliver.ts';
import type { Backend } from './backend.ts';

export type WebhookBackendOptions = DeliverOptions & {
  poster: ReloadingPoster;
  batchMaxWaitMs: number;
  throttleQps: number;
  throttleBurst: number;
  initialBackoffMs: number;
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
  const send = createSendOptions(options, events);
  const deliver = createDeliverer(options, { bury, send, events });
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
            maxMessages: options.limits.maxBatchEvents,
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
      const stop = AbortSignal.any([signal, skipping.signal]);
      const answers = await deliver(rest, at, stop);
      for (const [k, delivery] of rest.entries()) verdicts.set(delivery, answers[k] as Verdict);
      return batch.map((d) => verdicts.get(d) as Verdict);
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
