import { ColonnadeError, type ConsumerDefinition, inboxPrefix } from '@colonnade/contracts';
import { PubHeaders } from '@nats-io/jetstream';
import { createInbox, type Msg, type NatsConnection, nanos } from '@nats-io/transport-node';
import { createPullWait, type PullResult, type PullWait } from './pull-wait.ts';
import { fromNatsError } from './wire-error.ts';

/** One message of a stream, as a durable consumer got it. */
export type Delivery = {
  /** Its place in the stream. */
  readonly seq: number;
  /** When the stream stored it, nanoseconds since 1970. */
  readonly storedAtNs: bigint;
  /** 1: the first time. */
  readonly tries: number;
  readonly subject: string;
  /** `Nats-Msg-Id`: the same for every try of one message. Read from the headers only where somebody asks. */
  readonly msgId?: string | undefined;
  readonly payload: Uint8Array;
};

export type PullOptions = {
  maxMessages: number;
  /** At least the largest message, or that one would never come. */
  maxBytes: number;
  /** How long to wait for a first message. */
  waitMs: number;
  /** From then on: how long to wait for a full batch. 0: what is there at once. */
  fillMs: number;
};

/** The reader's side of a durable consumer: one pull at a time; what it took is held until it is answered. */
export type PullReader = AsyncDisposable & {
  /** Messages in the order the server gave them; none when none came in time. @throws ColonnadeError `bus_unavailable` */
  pull(options: PullOptions, signal: AbortSignal): Promise<Delivery[]>;
  /** Sends the server one answer about each of these, and lets go of them. */
  answer(deliveries: readonly Delivery[], body: Uint8Array): void;
  /** As answer, for one message, and waits until the server has it. @throws ColonnadeError */
  answerAndWait(delivery: Delivery, body: Uint8Array): Promise<void>;
  /** Lets go of messages without an answer: one about a later message covers them. */
  release(deliveries: readonly Delivery[]): void;
};

const ANSWER_MS = 5000;
/** A server that is started anew has forgotten a pull; it is asked again after this long at the latest. */
const LONGEST_PULL_MS = 5000;
const WORKING = Buffer.from('+WPI');
const NAK = Buffer.from('-NAK');

type Held = Delivery & { readonly reply: string };

/** Opens the reader. While it holds messages it tells the server that it works on them. */
export function openPullReader(connection: NatsConnection, consumer: ConsumerDefinition): PullReader {
  const held = new Set<Held>();
  const requests = openRequests(connection, consumer, held);
  const heartbeat = setInterval(() => {
    for (const { reply } of held) connection.publish(reply, WORKING);
  }, consumer.ackWaitMs / 3);
  const release = (deliveries: readonly Delivery[]) => {
    for (const one of deliveries) held.delete(one as Held);
  };
  return {
    async pull(options, signal) {
      if (connection.isClosed()) throw new ColonnadeError('bus_unavailable', 'the bus is closed');
      return pullBatch(requests, options, signal);
    },
    release,
    answer(deliveries, body) {
      for (const one of deliveries) connection.publish((one as Held).reply, body);
      release(deliveries);
    },
    async answerAndWait(delivery, body) {
      try {
        await connection.request((delivery as Held).reply, body, { timeout: ANSWER_MS });
      } catch (thrown) {
        throw fromNatsError(thrown, `${consumer.stream} ${consumer.durable}`);
      } finally {
        release([delivery]);
      }
    },
    async [Symbol.asyncDispose]() {
      clearInterval(heartbeat);
      for (const { reply } of held) connection.publish(reply, NAK);
      requests.close();
      if (!connection.isClosed()) await connection.flush().catch(() => {});
    },
  };
}

type Requests = {
  /** One request for messages. A wait of 0 takes what is there at once, and is not broken off by the signal. */
  ask(room: number, maxBytes: number, waitMs: number, signal: AbortSignal): Promise<PullResult<Held>>;
  /** What came after its request was given up. */
  takeLate(): Held[];
  close(): void;
};

function openRequests(connection: NatsConnection, consumer: ConsumerDefinition, held: Set<Held>): Requests {
  const inbox = createInbox(inboxPrefix(consumer.user));
  const what = `${consumer.stream} ${consumer.durable}`;
  let wait: PullWait<Held> | undefined;
  let late: Held[] = [];
  let turn = 0;
  const subscription = connection.subscribe(`${inbox}.*`, {
    callback: (error, message) => {
      if (error !== null) return wait?.fail(fromNatsError(error, what));
      if (message.subject.startsWith(inbox)) return wait?.status(message);
      const delivery = readDelivery(message);
      held.add(delivery);
      if (wait === undefined) late.push(delivery);
      else wait.take(delivery);
    },
  });
  const statuses = connection.status();
  void (async () => {
    // A server that was away has forgotten the request.
    for await (const { type } of statuses) if (type === 'reconnect') wait?.giveUp();
  })();
  return {
    async ask(room, maxBytes, waitMs, signal) {
      turn += 1;
      const token = `${inbox}.${turn}`;
      wait = createPullWait<Held>({ token, room, waitMs, what, signal: waitMs === 0 ? undefined : signal });
      const times = waitMs === 0 ? { no_wait: true } : { expires: nanos(waitMs) };
      const options = JSON.stringify({ batch: room, max_bytes: maxBytes, ...times });
      try {
        connection.publish(nextSubject(consumer), options, { reply: token });
        return await wait.ended;
      } finally {
        wait = undefined;
      }
    },
    takeLate() {
      const taken = late;
      late = [];
      return taken;
    },
    close() {
      subscription.unsubscribe();
      (statuses as AsyncIterable<unknown> & { stop?: () => void }).stop?.();
    },
  };
}

/** First what is there; else a first message within the wait; then more until the batch is full or its time is over. */
async function pullBatch(requests: Requests, options: PullOptions, signal: AbortSignal): Promise<Delivery[]> {
  const taken = requests.takeLate();
  if (signal.aborted) return taken;
  const bytesLeft = () => options.maxBytes - taken.reduce((sum, { payload }) => sum + payload.length, 0);
  const more = async (room: number, waitMs: number) => {
    const { messages, end } = await requests.ask(room, bytesLeft(), waitMs, signal);
    taken.push(...messages);
    return end;
  };
  const waitUntil = async (untilMs: number, room: () => number) => {
    for (let left = untilMs - performance.now(); left >= 1; left = untilMs - performance.now()) {
      if (room() <= 0 || signal.aborted) return;
      const waitMs = Math.floor(Math.min(left, LONGEST_PULL_MS));
      if ((await more(room(), waitMs)) === 'bytes') return;
    }
  };
  const room = () => options.maxMessages - taken.length;
  if (room() > 0) await more(room(), 0);
  await waitUntil(performance.now() + options.waitMs, () => (taken.length === 0 ? 1 : 0));
  if (taken.length > 0) await waitUntil(performance.now() + options.fillMs, room);
  return taken;
}

function nextSubject({ stream, durable }: ConsumerDefinition): string {
  return `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`;
}

/**
 * What JetStream says of a message stands in its reply subject (ADR-15): `$JS.ACK`, optionally domain and account, stream,
 * consumer, tries, stream sequence, consumer sequence, time, pending.
 */
function readDelivery(message: Msg): Held {
  const reply = message.reply ?? '';
  const tokens = reply.split('.');
  const first = tokens.length >= 11 ? 6 : 4;
  return new HeldMessage(message, reply, {
    tries: Number(tokens[first]),
    seq: Number(tokens[first + 1]),
    storedAtNs: BigInt(tokens[first + 3] ?? 0),
  });
}

/** A class, so that what reads the headers is not made anew for every message. */
class HeldMessage implements Held {
  readonly #message: Msg;
  readonly reply: string;
  readonly seq: number;
  readonly storedAtNs: bigint;
  readonly tries: number;
  readonly subject: string;
  readonly payload: Uint8Array;

  constructor(message: Msg, reply: string, told: Pick<Held, 'seq' | 'storedAtNs' | 'tries'>) {
    this.#message = message;
    this.reply = reply;
    this.seq = told.seq;
    this.storedAtNs = told.storedAtNs;
    this.tries = told.tries;
    this.subject = message.subject;
    this.payload = message.data;
  }

  get msgId(): string | undefined {
    return this.#message.headers?.get(PubHeaders.MsgIdHdr) || undefined;
  }
}
