import type { Call, ConsumerDefinition, Endpoint } from '@colonnade/contracts';
import { jetstream } from '@nats-io/jetstream';
import type { z } from 'zod';
import { type BusOptions, openConnection, watchConnection } from './connect.ts';
import { type ConsumeOptions, type ConsumerState, consume, consumerState } from './consume.ts';
import { type BucketEntry, type PutOptions, putEntry, readEntries } from './entries.ts';
import { createPing } from './ping.ts';
import { type DurableMessage, publishDurable } from './publish.ts';
import { request } from './request.ts';
import { createAnswerKeys } from './sealed-answer.ts';
import { type Route, type ServedService, type ServiceDescription, serve } from './serve.ts';
import { provisionStreams, type StreamSizes } from './streams.ts';

/** One connection to NATS with the rights of one user. Nothing else of Colonnade imports a NATS client. */
export type Bus = AsyncDisposable & {
  request<Req extends z.ZodType, Res extends z.ZodType>(
    endpoint: Endpoint<Req, Res>,
    message: z.output<Req>,
    call: Call,
  ): Promise<z.output<Res>>;
  serve(service: ServiceDescription, routes: readonly Route[]): Promise<ServedService>;
  publishDurable(message: DurableMessage, call: Call): Promise<{ seq: number; duplicate: boolean }>;
  provisionStreams(sizes: StreamSizes): Promise<void>;
  /** Reads a durable consumer until the signal; see `consume`. */
  consume(consumer: ConsumerDefinition, options: ConsumeOptions, signal: AbortSignal): Promise<void>;
  consumerState(consumer: ConsumerDefinition): Promise<ConsumerState>;
  /** Entries of a bucket behind a sequence; see `readEntries`. */
  readEntries(stream: string, afterSeq: number): Promise<BucketEntry[]>;
  putEntry(subject: string, payload: Uint8Array, options?: PutOptions): Promise<boolean>;
  /** False while the connection is being made again. */
  isConnected(): boolean;
  /** Asks the server for a sign of life; for readiness. @throws ColonnadeError `bus_unavailable`, within a second */
  ping(): Promise<void>;
};

/** Connects. Disposing drains: what was published is flushed. @throws ColonnadeError `bus_unavailable` */
export async function connectBus(options: BusOptions): Promise<Bus> {
  const connection = await openConnection(options);
  const keys = createAnswerKeys();
  const stream = jetstream(connection);
  const watch = watchConnection(connection, options.logger);
  return {
    request: (endpoint, message, call) => request(connection, endpoint, message, call, keys),
    serve: (service, routes) => serve(connection, service, routes, keys, options.logger),
    publishDurable: (message, call) => publishDurable(stream, message, call),
    provisionStreams: (sizes) => provisionStreams(connection, sizes),
    consume: (consumer, consumeOptions, signal) => consume(connection, consumer, consumeOptions, signal),
    consumerState: (consumer) => consumerState(connection, consumer),
    readEntries: (stream, afterSeq) => readEntries(connection, stream, afterSeq),
    putEntry: (subject, payload, put) => putEntry(connection, subject, payload, put),
    isConnected: watch.isConnected,
    ping: createPing(connection),
    async [Symbol.asyncDispose]() {
      if (connection.isClosed()) return;
      if (watch.isConnected()) await connection.drain().catch(() => connection.close());
      else await connection.close();
    },
  };
}
