import { createThrottle, type ReloadingPoster, type SendOptions } from '@colonnade/audit-webhook';
import { type Bus, type ConsumerState, type Delivery, DONE, type Verdict } from '@colonnade/bus';
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
  /** Tells it where its consumer and the stream stand. */
  observe(state: ConsumerState): void;
};

const NAME = 'webhook';
/** While skipping, payloads are not kept, so a gap record covers many. */
const SKIP_BATCH = { maxMessages: 4096, maxBytes: 16 * 1024 * 1024, waitMs: 1000, fillMs: 0 };
const SKIP_LATER: Verdict = { kind: 'later', delayMs: 500 };
/** So long it waits for more of what is to be skipped. What has not come by then another replica holds, and answers for. */
const SKIP_PATIENCE_MS = 2000;

/** A request that is under way when the sink ends has so long. The process is ended by force after ten seconds. */
const LAST_TRY_MS = 4000;

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
  let skipping = new AbortController();
  const send = createSendOptions(options, events, () => skipping.signal);
  const deliver = createDeliverer(options, { bury, send, events });
  let stream: string | undefined;
  let skipSeq = 0;
  let ackedSeq = 0;
  let skipUntilMs = 0;
  const isSkipping = () => ackedSeq < skipSeq && performance.now() < skipUntilMs;
  const observe = (state: ConsumerState) => {
    const { created, lastSeq } = state.stream;
    // Made anew, or without its end: the same numbers are other records now.
    if (created !== stream || lastSeq < skipSeq) skipSeq = 0;
    stream = created;
    ackedSeq = state.ackedSeq;
  };
  /** @returns what is given up of a batch, once that is on record */
  const giveUp = async (batch: readonly Delivery[]) => {
    if (!batch.some(({ seq }) => seq <= skipSeq)) return new Set<Delivery>();
    observe(await bus.consumerState(auditWebhookConsumer));
    const skipped = batch.filter(({ seq }) => seq <= skipSeq);
    await recordGap(skipped, stream ?? '');
    skipUntilMs = performance.now() + SKIP_PATIENCE_MS;
    return new Set(skipped);
  };
  return {
    name: NAME,
    consumer: auditWebhookConsumer,
    batch: () =>
      isSkipping()
        ? SKIP_BATCH
        : {
            maxMessages: options.limits.maxBatchEvents,
            maxBytes: options.limits.maxBatchBytes + LIMITS.natsPayloadBytes,
            waitMs: 5000,
            fillMs: options.batchMaxWaitMs,
          },
    async run(signal) {
      signal.addEventListener('abort', () => setTimeout(() => skipping.abort(), LAST_TRY_MS).unref(), {
        once: true,
      });
      stream = (await bus.consumerState(auditWebhookConsumer)).stream.created;
    },
    async process(batch, signal) {
      const skipped = await giveUp(batch);
      // A list that waits for a dead webhook must not stand before what is to be skipped.
      if (isSkipping()) return batch.map((d) => (skipped.has(d) ? DONE : SKIP_LATER));
      const rest = batch.filter((d) => !skipped.has(d));
      const stop = AbortSignal.any([signal, skipping.signal]);
      const answers = await deliver(rest, stream ?? '', stop);
      const verdicts = new Map(rest.map((d, i): [Delivery, Verdict] => [d, answers[i] as Verdict]));
      return batch.map((d) => verdicts.get(d) ?? DONE);
    },
    async shutdown() {
      options.poster[Symbol.dispose]();
    },
    check() {
      if (stream === undefined) throw new Error('the stream has no consumer for the webhook');
    },
    observe,
    skipTo(seq) {
      if (seq <= skipSeq) return;
      skipSeq = seq;
      skipUntilMs = performance.now() + SKIP_PATIENCE_MS;
      skipping.abort();
      skipping = new AbortController();
    },
  };
}

function createSendOptions(
  options: WebhookBackendOptions,
  events: Events,
  giveUp: () => AbortSignal,
): SendOptions {
  let failing = false;
  return {
    // A webhook that takes half a minute for each request must not keep from skipping.
    post: (body) => options.poster.post(body, giveUp()),
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
