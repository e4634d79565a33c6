import { setTimeout as sleep } from 'node:timers/promises';
import {
  AUDIT_ANCHOR_STREAM,
  type AUDIT_DEAD_STREAM,
  type AuditAnchor,
  CONSUMERS,
  type DeadLetter,
  decode,
  type EVENTS_DEAD_STREAM,
  STREAMS,
  zAuditAnchor,
  zDeadLetter,
} from '@colonnade/contracts';
import { jetstreamManager, type StoredMsg } from '@nats-io/jetstream';
import { Svcm } from '@nats-io/services';
import type { NatsConnection, QueuedIterator } from '@nats-io/transport-node';
import type { Bus } from './bus.ts';
import { type BusOptions, openConnection } from './connect.ts';
import { isNotFound } from './not-found.ts';
import { request } from './request.ts';
import { createAnswerKeys } from './sealed-answer.ts';
import { fromNatsError } from './wire-error.ts';

/** One process of a NATS micro service, as PING, INFO and STATS tell it. */
export type ServiceInstance = {
  name: string;
  id: string;
  version: string;
  description: string;
  started: string;
  /** Round trip of the PING it was first heard by, milliseconds. */
  rttMs: number;
  requests: number;
  endpoints: { name: string; subject: string; requests: number; averageMs: number }[];
};

export type StreamFill = {
  name: string;
  messages: number;
  bytes: number;
  maxBytes: number;
  firstSeq: number;
  lastSeq: number;
};

export type ConsumerLag = {
  stream: string;
  name: string;
  /** Not delivered yet; delivered and not acknowledged; requests of readers that wait for more. */
  pending: number;
  unacknowledged: number;
  readers: number;
  redelivered: number;
};

type DeadLetterStream = typeof AUDIT_DEAD_STREAM | typeof EVENTS_DEAD_STREAM;

export type StoredDeadLetter = {
  letter: DeadLetter;
  /** Of the audit who could not take it: `file`, `webhook` or `ingest`; of events the service they came from. */
  of: string;
  /** RFC 3339. */
  storedAt: string;
};

/** What an operator may look at: services, streams, consumers, the anchors of the audit log and its dead letters. Changes nothing. */
export type Inspector = AsyncDisposable & {
  services(): Promise<ServiceInstance[]>;
  /** Those that are there, of all there should be. */
  streams(): Promise<StreamFill[]>;
  consumers(): Promise<ConsumerLag[]>;
  anchors(): Promise<AuditAnchor[]>;
  /** Asks an endpoint that the operator may ask. @throws ColonnadeError as `request` of a bus */
  ask: Bus['request'];
  /** What a backend of the audit could never take, or what of services' events was refused; oldest first. */
  deadLetters(stream: DeadLetterStream): AsyncIterable<StoredDeadLetter>;
};

/** Services answer within this; who is slower is not seen. */
const WAIT_MS = 1000;
const CONNECT_MS = 5000;
const READ_AT_ONCE = 64;
const NS_PER_MS = 1e6;
/** Between two pulls a reader waits for nothing: whoever seems to read nothing is looked at again, within the time services have. */
const LOOKS = 10;
const LOOK_AGAIN_MS = 80;

/** Connects as `operator`; a person waits for it, so for a server that hangs it waits five seconds. @throws ColonnadeError `bus_unavailable` */
export async function connectInspector(options: Omit<BusOptions, 'user'>): Promise<Inspector> {
  const connection = await openConnection({ limitMs: CONNECT_MS, ...options, user: 'operator' });
  return {
    services: () => listServices(connection),
    streams: () => listStreams(connection),
    consumers: () => listConsumers(connection),
    anchors: () => readAnchors(connection),
    ask: (endpoint, message, call) => request(connection, endpoint, message, call, createAnswerKeys()),
    deadLetters: (stream) => readDeadLetters(connection, stream),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

async function listServices(connection: NatsConnection): Promise<ServiceInstance[]> {
  const began = performance.now();
  const client = new Svcm(connection).client({ strategy: 'timer', maxWait: WAIT_MS });
  const heard = new Map<string, number>();
  const listen = async () => {
    for await (const { id } of await client.ping()) heard.set(id, performance.now() - began);
  };
  const [, infos, stats] = await Promise.all([
    listen(),
    collect(client.info()),
    collect(client.stats()),
  ]).catch((thrown: unknown) => {
    throw fromNatsError(thrown, 'services');
  });
  const infoOf = new Map(infos.map((info) => [info.id, info]));
  return stats
    .map(({ id, name, version, started, endpoints = [] }) => ({
      ...{ name, id, version, started, description: infoOf.get(id)?.description ?? '' },
      rttMs: heard.get(id) ?? WAIT_MS,
      requests: endpoints.reduce((sum, one) => sum + one.num_requests, 0),
      endpoints: endpoints.map((one) => ({
        name: one.name,
        subject: one.subject,
        requests: one.num_requests,
        averageMs: one.average_processing_time / NS_PER_MS,
      })),
    }))
    .sort((a, b) => (`${a.name} ${a.started}` < `${b.name} ${b.started}` ? -1 : 1));
}

async function collect<T>(answers: Promise<QueuedIterator<T>>): Promise<T[]> {
  return await Array.fromAsync(await answers);
}

async function listStreams(connection: NatsConnection): Promise<StreamFill[]> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const found = STREAMS.map(async (name): Promise<StreamFill[]> => {
    const info = await manager.streams.info(name).catch(whenMissing(name));
    if (info === undefined) return [];
    const { messages, bytes, first_seq: firstSeq, last_seq: lastSeq } = info.state;
    return [{ name, messages, bytes, maxBytes: info.config.max_bytes, firstSeq, lastSeq }];
  });
  return (await Promise.all(found)).flat();
}

async function listConsumers(connection: NatsConnection): Promise<ConsumerLag[]> {
  for (let look = 1; ; look++) {
    const found = await lookAtConsumers(connection);
    if (look === LOOKS || found.every(({ readers }) => readers > 0)) return found;
    await sleep(LOOK_AGAIN_MS);
  }
}

async function lookAtConsumers(connection: NatsConnection): Promise<ConsumerLag[]> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const found = CONSUMERS.map(async ({ stream, durable: name }): Promise<ConsumerLag[]> => {
    const info = await manager.consumers.info(stream, name).catch(whenMissing(name));
    if (info === undefined) return [];
    const { num_pending: pending, num_ack_pending: unacknowledged, num_waiting: readers } = info;
    return [{ stream, name, pending, unacknowledged, readers, redelivered: info.num_redelivered }];
  });
  return (await Promise.all(found)).flat();
}

/** "Not found" is an answer; that the bus does not carry the question is none. */
function whenMissing(what: string): (thrown: unknown) => undefined {
  return (thrown) => {
    if (isNotFound(thrown)) return undefined;
    throw fromNatsError(thrown, what);
  };
}

async function readAnchors(connection: NatsConnection): Promise<AuditAnchor[]> {
  const messages = await Array.fromAsync(readStream(connection, AUDIT_ANCHOR_STREAM));
  return messages.map(({ data }) => decode(zAuditAnchor, data));
}

async function* readDeadLetters(
  connection: NatsConnection,
  stream: DeadLetterStream,
): AsyncGenerator<StoredDeadLetter> {
  for await (const { data, subject, time } of readStream(connection, stream)) {
    yield {
      letter: decode(zDeadLetter, data),
      of: subject.split('.').at(-1) ?? '',
      storedAt: time.toISOString(),
    };
  }
}

/** What a stream holds, oldest first; nothing where there is no such stream. */
async function* readStream(connection: NatsConnection, stream: string): AsyncGenerator<StoredMsg> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const info = await manager.streams.info(stream).catch(whenMissing(stream));
  if (info === undefined) return;
  const { first_seq: first, last_seq: last } = info.state;
  for (let from = Math.max(first, 1); from <= last; from += READ_AT_ONCE) {
    const until = Math.min(last, from + READ_AT_ONCE - 1);
    const seqs = Array.from({ length: until - from + 1 }, (_, i) => from + i);
    const messages = await Promise.all(
      seqs.map((seq) => manager.direct.getMessage(stream, { seq }).catch(whenMissing(stream))),
    );
    for (const message of messages) if (message) yield message;
  }
}
