import type { Bus, ConsumerState } from '@colonnade/bus';
import type { Backend } from './backends/backend.ts';
import type { WebhookBackend } from './backends/webhook.ts';
import type { Events } from './events.ts';

export type BacklogLimits = {
  /** Events that may wait for the webhook. */
  maxEvents: number;
  /** Share of the stream's bytes that what waits for the webhook may take, of 1. */
  maxShare: number;
};

const EVERY_MS = 1000;
const ALERT_AT = 0.7;
const CALM_AT = 0.6;
/** So much of what may wait has to come anew before it is skipped again. */
const SKIP_STEP = 0.1;
const SKIP_STEP_MIN = 10;
/** The stream is refused new records when it is full; before that this replica says that it is not ready. */
const NOT_READY_AT = 0.95;

/** Watches how far the backends are behind. `check` throws when the stream is nearly full. */
export type BacklogWatch = Disposable & { check(): void };

/**
 * The stream drops a record by itself once both backends have acknowledged it. What is left to do here is to measure, to
 * raise the alarm at 70 % of a limit, and to let the webhook skip ahead at the limit: the records of others come first.
 */
export function watchBacklog(
  bus: Bus,
  backends: { file: Backend; webhook: WebhookBackend | undefined },
  limits: BacklogLimits,
  events: Events,
): BacklogWatch {
  const alarmed = new Set<string>();
  let fill = 0;
  let skipped = 0;
  const report = (name: string, waiting: number, ratio: number) => {
    events.lag(name, waiting, ratio);
    if (ratio >= ALERT_AT && !alarmed.has(name)) {
      alarmed.add(name);
      events.backlogAlert(name, waiting, ratio);
    }
    if (ratio < CALM_AT) alarmed.delete(name);
  };
  const look = async () => {
    const file = await bus.consumerState(backends.file.consumer);
    fill = fillOf(file);
    report('file', file.waiting, fill);
    if (backends.webhook === undefined) return;
    const webhook = await bus.consumerState(backends.webhook.consumer);
    const ratio = backlogRatio(webhook, file.waiting, limits);
    report('webhook', webhook.waiting, ratio);
    backends.webhook.observe(webhook);
    const target = ratio >= 1 ? nextSkip(skipped, webhook, limits) : undefined;
    if (target === undefined) return;
    skipped = target;
    backends.webhook.skipTo(target);
  };
  let looking = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look()
      .catch(events.lagUnknown)
      .finally(() => {
        looking = false;
      });
  }, EVERY_MS);
  return {
    check() {
      if (fill >= NOT_READY_AT) throw new Error(`the audit stream is ${Math.round(fill * 100)} % full`);
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function fillOf({ stream }: ConsumerState): number {
  return stream.maxBytes > 0 ? stream.bytes / stream.maxBytes : 0;
}

/**
 * How much of its limit the webhook's backlog takes. Bytes count only where the webhook alone holds them: skipping frees
 * nothing that the file still needs.
 */
export function backlogRatio(webhook: ConsumerState, fileWaiting: number, limits: BacklogLimits): number {
  const byEvents = webhook.waiting / limits.maxEvents;
  // What one replica holds stays, while others have skipped what is behind it: numbers tell nothing of how much is there.
  const held = Math.max(1, webhook.stream.messages);
  const alone = Math.max(0, webhook.waiting - fileWaiting);
  const byBytes = (fillOf(webhook) * Math.min(1, alone / held)) / limits.maxShare;
  return Math.max(byEvents, byBytes);
}

/**
 * Up to where the webhook is given up now; undefined while what was given up last is not far behind. Each skip puts a gap record into
 * the stream, and another replica may hold what is skipped: without a step between them each record would call for the next one.
 * @param skipped up to where it was given up last; 0: never
 */
export function nextSkip(skipped: number, webhook: ConsumerState, limits: BacklogLimits): number | undefined {
  const target = skipTarget(webhook, limits);
  const step = Math.max(SKIP_STEP_MIN, Math.ceil(Math.min(webhook.waiting, limits.maxEvents) * SKIP_STEP));
  // Below it the stream was made anew, and numbers anew.
  const near = target < skipped + step && webhook.stream.lastSeq >= skipped;
  return skipped > 0 && near ? undefined : target;
}

/** Up to where the webhook is given up: half of what waits, or what is over half the limit, whichever is more. */
export function skipTarget({ waiting, stream }: ConsumerState, limits: BacklogLimits): number {
  return stream.lastSeq - Math.floor(Math.min(waiting, limits.maxEvents) / 2);
}
