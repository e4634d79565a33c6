import {
  AUDIT_ANCHOR_STREAM,
  AUDIT_ANCHOR_SUBJECTS,
  AUDIT_DEAD_STREAM,
  AUDIT_DEAD_SUBJECTS,
  AUDIT_STREAM,
  AUDIT_SUBJECTS,
  CONSUMERS,
  type ConsumerDefinition,
  EVENTS_DEAD_STREAM,
  EVENTS_DEAD_SUBJECTS,
  EVENTS_STREAM,
  EVENTS_SUBJECTS,
  LIMITS,
  SERVICE_EVENTS_STREAM,
  SERVICE_EVENTS_SUBJECTS,
  TASK_STATES_STREAM,
  TASK_STATES_SUBJECTS,
} from '@colonnade/contracts';
import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  jetstreamManager,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { undefinedIfNotFound } from './not-found.ts';

export type StreamSizes = {
  /** Space reserved for each stream, bytes: neither can starve the other. */
  maxEventsBytes: number;
  maxAuditBytes: number;
  /** Dead letters of the audit backends; an eighth of maxAuditBytes unless given, and room for a few large ones. */
  maxAuditDeadBytes?: number;
  /** Events of services outside; a quarter of maxEventsBytes unless given. */
  maxServiceEventsBytes?: number;
  /** 1, or 3 in a NATS cluster. */
  replicas: number;
  /** Whether an audit webhook reads AUDIT too: what only one of the backends has is kept. */
  auditWebhook?: boolean;
};

const DUPLICATE_WINDOW_MS = 2 * 60 * 1000;
/** Long enough for a consumer to come back, short enough that nobody has to empty the stream by hand. */
const EVENTS_KEEP_MS = 7 * 24 * 60 * 60 * 1000;
const ANCHORS_MAX_BYTES = 1024 * 1024;
/** Of refused events the newest: of one service so many, some 6 KB each, that 25 services take no place of each other's. */
const EVENTS_DEAD_MAX_BYTES = 8 * 1024 * 1024;
const EVENTS_DEAD_OF_ONE = 50;
/** A service that was away for less than this may send again what it does not know to be stored. */
const SERVICE_DUPLICATE_WINDOW_MS = 60 * 60 * 1000;
/** Some 150 bytes for each task that lives, and for each that ended within the hour: 50,000 of them. */
const TASK_STATES_MAX_BYTES = 8 * 1024 * 1024;

type WantedStream = Pick<StreamConfig, 'name' | 'subjects' | 'max_bytes'> & Partial<StreamConfig>;

/**
 * Makes or updates the streams and their durable consumers; only the user `provisioner` may. EVENTS, AUDIT and the dead
 * letters refuse new messages when full instead of dropping old ones: the writer then keeps its outbox row, or fails
 * closed.
 *
 * AUDIT drops a message once every consumer has acknowledged it (interest). A stream without any consumer would
 * acknowledge and drop at once, so it becomes one of that kind only after its consumers are there.
 */
export async function provisionStreams(connection: NatsConnection, sizes: StreamSizes): Promise<void> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const base = baseConfig(sizes.replicas);
  for (const config of streamsFor(sizes)) await makeStream(manager, { ...base, ...config });
  for (const consumer of CONSUMERS) {
    if (consumer.optional && sizes.auditWebhook !== true) await dropConsumer(manager, consumer);
    else await makeConsumer(manager, consumer, sizes.replicas);
  }
  const audit = await manager.streams.info(AUDIT_STREAM);
  if (audit.config.retention === RetentionPolicy.Interest) return;
  await updateStream(manager, { ...audit.config, retention: RetentionPolicy.Interest });
}

/** The server takes a change of retention between limits and interest, though the client's type does not list it. */
async function updateStream(manager: JetStreamManager, config: WantedStream): Promise<void> {
  await manager.streams.update(config.name, config);
}

function baseConfig(replicas: number): Partial<StreamConfig> {
  return {
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    storage: StorageType.File,
    num_replicas: replicas,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    deny_delete: true,
    deny_purge: false,
  };
}

function streamsFor(sizes: StreamSizes): WantedStream[] {
  const maxDeadBytes =
    sizes.maxAuditDeadBytes ?? Math.max(Math.floor(sizes.maxAuditBytes / 8), 4 * LIMITS.natsPayloadBytes);
  return [
    {
      name: EVENTS_STREAM,
      subjects: [EVENTS_SUBJECTS],
      max_bytes: sizes.maxEventsBytes,
      max_age: nanos(EVENTS_KEEP_MS),
    },
    {
      name: AUDIT_STREAM,
      subjects: [AUDIT_SUBJECTS],
      max_bytes: sizes.maxAuditBytes,
      deny_purge: true,
      // A record stays until it is where it belongs, however long that takes; said so that an older limit goes.
      max_age: 0,
    },
    {
      name: AUDIT_DEAD_STREAM,
      subjects: [AUDIT_DEAD_SUBJECTS],
      max_bytes: maxDeadBytes,
      allow_direct: true,
    },
    {
      name: AUDIT_ANCHOR_STREAM,
      subjects: [AUDIT_ANCHOR_SUBJECTS],
      max_bytes: ANCHORS_MAX_BYTES,
      discard: DiscardPolicy.Old,
      deny_purge: true,
      allow_direct: true,
    },
    {
      name: SERVICE_EVENTS_STREAM,
      subjects: [SERVICE_EVENTS_SUBJECTS],
      max_bytes: sizes.maxServiceEventsBytes ?? Math.ceil(sizes.maxEventsBytes / 4),
      max_age: nanos(EVENTS_KEEP_MS),
      duplicate_window: nanos(SERVICE_DUPLICATE_WINDOW_MS),
    },
    {
      name: EVENTS_DEAD_STREAM,
      subjects: [EVENTS_DEAD_SUBJECTS],
      max_bytes: EVENTS_DEAD_MAX_BYTES,
      max_msgs_per_subject: EVENTS_DEAD_OF_ONE,
      discard: DiscardPolicy.Old,
      allow_direct: true,
    },
    {
      // A bucket as every client of NATS key-value knows them.
      name: TASK_STATES_STREAM,
      subjects: [TASK_STATES_SUBJECTS],
      max_bytes: TASK_STATES_MAX_BYTES,
      max_msgs_per_subject: 1,
      allow_direct: true,
      allow_msg_ttl: true,
    },
  ];
}

async function makeStream(manager: JetStreamManager, config: WantedStream): Promise<void> {
  const existing = await manager.streams.info(config.name).catch(undefinedIfNotFound);
  if (existing === undefined) await manager.streams.add(config as StreamConfig);
  // What AUDIT has become stays: going back would keep what both backends have.
  else await updateStream(manager, { ...config, retention: existing.config.retention });
}

async function makeConsumer(
  manager: JetStreamManager,
  consumer: ConsumerDefinition,
  replicas: number,
): Promise<void> {
  await manager.consumers.add(consumer.stream, {
    name: consumer.durable,
    durable_name: consumer.durable,
    ack_policy: consumer.ack === 'all' ? AckPolicy.All : AckPolicy.Explicit,
    ack_wait: nanos(consumer.ackWaitMs),
    max_ack_pending: consumer.maxAckPending,
    max_deliver: -1,
    deliver_policy: DeliverPolicy.All,
    replay_policy: ReplayPolicy.Instant,
    num_replicas: replicas,
  });
}

async function dropConsumer(manager: JetStreamManager, consumer: ConsumerDefinition): Promise<void> {
  const there = await manager.consumers.info(consumer.stream, consumer.durable).catch(undefinedIfNotFound);
  if (there !== undefined) await manager.consumers.delete(consumer.stream, consumer.durable);
}
