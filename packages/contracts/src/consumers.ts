import { AUDIT_STREAM } from './audit.ts';
import type { BusUser } from './endpoints.ts';
import { EVENTS_STREAM } from './events.ts';
import { SERVICE_EVENTS_STREAM } from './service-events.ts';

/**
 * A durable pull consumer: made by the provisioner only, read by one user only. Deliveries are unlimited, so nothing is
 * given up by the server (DESIGN section 4).
 */
export type ConsumerDefinition = {
  stream: string;
  durable: string;
  user: BusUser;
  /** `all`: one acknowledgement covers everything before it, for a consumer that has one reader at a time. */
  ack: 'all' | 'explicit';
  /** Without a word from the reader for this long, a message is delivered again. The reader says `working` meanwhile. */
  ackWaitMs: number;
  /** Messages delivered and not yet acknowledged, at most. */
  maxAckPending: number;
  /** An optional consumer is only there where its reader is: it would hold the stream's messages for nobody. */
  optional: boolean;
};

/** Short, because after a kill -9 the next reader waits this long for what the dead one had taken. */
const SHORT_ACK_WAIT_MS = 3000;

export const auditFileConsumer: ConsumerDefinition = {
  stream: AUDIT_STREAM,
  durable: 'file',
  user: 'audit-sink',
  ack: 'all',
  ackWaitMs: SHORT_ACK_WAIT_MS,
  maxAckPending: 4096,
  optional: false,
};

export const auditWebhookConsumer: ConsumerDefinition = {
  stream: AUDIT_STREAM,
  durable: 'webhook',
  user: 'audit-sink',
  ack: 'explicit',
  ackWaitMs: 15_000,
  maxAckPending: 8192,
  optional: true,
};

export const hooksConsumer: ConsumerDefinition = {
  stream: EVENTS_STREAM,
  durable: 'hook-runner',
  user: 'hook-runner',
  ack: 'explicit',
  ackWaitMs: SHORT_ACK_WAIT_MS,
  maxAckPending: 256,
  optional: false,
};

/** The same events, for whom they touch: a hook that hangs holds up the events after it, and no generation. */
export const touchesConsumer: ConsumerDefinition = { ...hooksConsumer, durable: 'hook-runner-touches' };

/** Events of services: beside those of the estate, so that many of them keep none of those waiting. */
export const serviceHooksConsumer: ConsumerDefinition = { ...hooksConsumer, stream: SERVICE_EVENTS_STREAM };

/** Every durable consumer there is; rights and provisioning are made from this list. */
export const CONSUMERS: readonly ConsumerDefinition[] = [
  auditFileConsumer,
  auditWebhookConsumer,
  hooksConsumer,
  touchesConsumer,
  serviceHooksConsumer,
];

/** What the reader of a consumer may publish: ask for the next messages, look, acknowledge. */
export function readerRights({ stream, durable }: ConsumerDefinition): readonly string[] {
  return [
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`,
    `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
    `$JS.ACK.${stream}.${durable}.>`,
  ];
}

/** What the provisioner may publish for a consumer; it may take away only an optional one. */
export function makerRights({ stream, durable, optional }: ConsumerDefinition): readonly string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}.${durable}`,
    `$JS.API.CONSUMER.INFO.${stream}.${durable}`,
    ...(optional ? [`$JS.API.CONSUMER.DELETE.${stream}.${durable}`] : []),
  ];
}
