import { setTimeout as sleep } from 'node:timers/promises';
import { ColonnadeError, type ConsumerDefinition, toColonnadeError } from '@colonnade/contracts';
import { type ConsumerInfo, jetstreamManager, type StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { isNotFound } from './not-found.ts';
import { type Delivery, openPullReader, type PullOptions, type PullReader } from './pull.ts';
import { fromNatsError } from './wire-error.ts';

/**
 * What became of one message. `poison` is only for what can be proven never to succeed; its dead letter is stored before
 * the message is given up. Anything not known is `retry`.
 */
export type Verdict =
  | { kind: 'done' }
  | { kind: 'poison'; bury: () => Promise<void> }
  /** Not its turn yet: it comes again, and nothing is wrong. */
  | { kind: 'later'; delayMs: number }
  | { kind: 'retry'; error: unknown };

export const DONE: Verdict = { kind: 'done' };

/** Where a consumer and its stream stand. */
export type ConsumerState = {
  /** Everything up to here is acknowledged. */
  ackedSeq: number;
  /** Messages not delivered yet, and those delivered but not acknowledged. */
  waiting: number;
  stream: {
    created: string;
    firstSeq: number;
    lastSeq: number;
    /** Those it still holds: from the first to the last there may be holes. */
    messages: number;
    bytes: number;
    maxBytes: number;
  };
};

export type ConsumeOptions = {
  /** How much the next batch may be; asked before each one. */
  pull: () => PullOptions;
  /** The server confirms the acknowledgement of each batch, while the next one is handled and before that is acknowledged. */
  confirm: boolean;
  /**
   * Handles one batch, in the order of the stream. One verdict per message, in the same order; a throw is a retry of all of
   * them. The messages are held for as long as it takes: the server is told that work goes on.
   */
  handle: (batch: readonly Delivery[], signal: AbortSignal) => Promise<readonly Verdict[]>;
  /** The alert: a batch failed and comes again, or the bus cannot be read. */
  onFailure: (error: ColonnadeError, attempt: number) => void;
};

const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 5000;
const ACK = Buffer.from('+ACK');
const NAK = Buffer.from('-NAK');
const TERM = Buffer.from('+TERM');

/**
 * Reads a durable consumer until the signal: the next batch is fetched while one is handled. A batch that is here at the
 * signal is still handled, the one that was being fetched is given back for the next reader.
 */
export async function consume(
  connection: NatsConnection,
  consumer: ConsumerDefinition,
  options: ConsumeOptions,
  signal: AbortSignal,
): Promise<void> {
  await using reader = openPullReader(connection, consumer);
  let failures = 0;
  const alert = async (thrown: unknown) => {
    failures += 1;
    options.onFailure(toColonnadeError(thrown), failures);
    await pause(failures, signal);
  };
  let next = prefetch(reader, options, signal);
  let confirmed: Promise<unknown> = Promise.resolve();
  while (!signal.aborted) {
    const fetched = await next;
    next = prefetch(reader, options, signal);
    if ('error' in fetched) {
      await alert(fetched.error);
      continue;
    }
    const { batch } = fetched;
    batch.sort((a, b) => a.seq - b.seq);
    const { done, error } = await handleBatch(reader, consumer, options, batch, failures, signal);
    // With nothing to handle too: nobody else hears that it did not come.
    const unconfirmed = await confirmed;
    confirmed = acknowledge(reader, consumer, options.confirm, done).catch((thrown: unknown) => thrown);
    const fault = error ?? unconfirmed;
    if (fault !== undefined) await alert(fault);
    else if (batch.length > 0) failures = 0;
  }
  await confirmed;
  const left = await next;
  if ('batch' in left) reader.answer(left.batch, NAK);
}

/** A pull never rejects: one is always under way beside the work, and its batch must not be lost with another's failure. */
function prefetch(
  reader: PullReader,
  options: ConsumeOptions,
  signal: AbortSignal,
): Promise<{ batch: Delivery[] } | { error: unknown }> {
  return reader.pull(options.pull(), signal).then(
    (batch) => ({ batch }),
    (error: unknown) => ({ error }),
  );
}

/** @returns what is to be acknowledged, and the error, when something of the batch comes again */
async function handleBatch(
  reader: PullReader,
  consumer: ConsumerDefinition,
  options: ConsumeOptions,
  batch: readonly Delivery[],
  failures: number,
  signal: AbortSignal,
): Promise<{ done: readonly Delivery[]; error: unknown }> {
  if (batch.length === 0) return { done: [], error: undefined };
  const verdicts = await options
    .handle(batch, signal)
    .catch((error: unknown) => batch.map((): Verdict => ({ kind: 'retry', error })));
  const done: Delivery[] = [];
  let blocked: Verdict | undefined;
  let firstError: unknown;
  for (const [i, delivery] of batch.entries()) {
    // One acknowledgement for all would cover a message before it that has to come again.
    const verdict: Verdict = blocked ?? (await buried(verdicts[i] ?? missing()));
    if (verdict.kind === 'done') {
      done.push(delivery);
    } else if (verdict.kind === 'poison') {
      // With one acknowledgement for all, a later one covers this message as well.
      if (consumer.ack === 'explicit') reader.answer([delivery], TERM);
      else done.push(delivery);
    } else {
      if (verdict.kind === 'retry') firstError ??= verdict.error;
      const delayMs = verdict.kind === 'later' ? verdict.delayMs : backoffMs(failures + delivery.tries);
      reader.answer([delivery], nakBody(delayMs));
      if (consumer.ack === 'all') blocked = verdict;
    }
  }
  return { done, error: firstError };
}

/** A dead letter that is not stored makes poison a retry. */
async function buried(verdict: Verdict): Promise<Verdict> {
  if (verdict.kind !== 'poison') return verdict;
  try {
    await verdict.bury();
    return verdict;
  } catch (error) {
    return { kind: 'retry', error };
  }
}

function missing(): Verdict {
  return { kind: 'retry', error: new ColonnadeError('internal', 'a message was left without a verdict') };
}

async function acknowledge(
  reader: PullReader,
  consumer: ConsumerDefinition,
  confirm: boolean,
  done: readonly Delivery[],
): Promise<void> {
  const last = done.at(-1);
  if (last === undefined) return;
  if (consumer.ack === 'all') reader.release(done.slice(0, -1));
  else reader.answer(done.slice(0, -1), ACK);
  if (confirm) await reader.answerAndWait(last, ACK);
  else reader.answer([last], ACK);
}

function nakBody(delayMs: number): Uint8Array {
  return Buffer.from(`-NAK ${JSON.stringify({ delay: delayMs * 1_000_000 })}`);
}

function backoffMs(failures: number): number {
  const full = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(failures, 10));
  return Math.round(full * (0.5 + Math.random() / 2));
}

async function pause(failures: number, signal: AbortSignal): Promise<void> {
  await sleep(backoffMs(failures), undefined, { signal }).catch(() => {});
}

/** Where a consumer and its stream stand now. @throws ColonnadeError `bus_unavailable`, `not_found` (not provisioned) */
export async function consumerState(
  connection: NatsConnection,
  { stream, durable }: ConsumerDefinition,
): Promise<ConsumerState> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  let infos: readonly [ConsumerInfo, StreamInfo];
  try {
    infos = await Promise.all([manager.consumers.info(stream, durable), manager.streams.info(stream)]);
  } catch (thrown) {
    if (isNotFound(thrown)) {
      throw new ColonnadeError('not_found', `${stream} has no consumer ${durable}; provision it first`);
    }
    throw fromNatsError(thrown, `${stream} ${durable}`);
  }
  const [consumer, { created, state, config }] = infos;
  return {
    ackedSeq: consumer.ack_floor.stream_seq,
    waiting: consumer.num_pending + consumer.num_ack_pending,
    stream: {
      created: String(created),
      firstSeq: state.first_seq,
      lastSeq: state.last_seq,
      messages: state.messages,
      bytes: state.bytes,
      maxBytes: config.max_bytes,
    },
  };
}
