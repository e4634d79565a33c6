import { AUDIT_STREAM, AUDIT_SUBJECTS, EVENTS_STREAM, EVENTS_SUBJECTS } from '@colonnade/contracts';
import {
  DiscardPolicy,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream';
import { type NatsConnection, nanos } from '@nats-io/transport-node';

export type StreamSizes = {
  /** Space reserved for each stream, bytes: neither can starve the other. */
  maxEventsBytes: number;
  maxAuditBytes: number;
  /** 1, or 3 in a NATS cluster. */
  replicas: number;
};

const DUPLICATE_WINDOW_MS = 2 * 60 * 1000;
/** Long enough for a consumer to come back, short enough that nobody has to empty the stream by hand. */
const EVENTS_KEEP_MS = 7 * 24 * 60 * 60 * 1000;
const AUDIT_KEEP_MS = 30 * 24 * 60 * 60 * 1000;

/**
 * Makes or updates the two streams; only the user `provisioner` may. Both refuse new messages when full instead of
 * dropping old ones: the writer then keeps its outbox row, or fails closed.
 */
export async function provisionStreams(connection: NatsConnection, sizes: StreamSizes): Promise<void> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const base: Omit<StreamConfig, 'name' | 'subjects' | 'max_bytes'> = {
    retention: RetentionPolicy.Limits,
    discard: DiscardPolicy.New,
    storage: StorageType.File,
    num_replicas: sizes.replicas,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
    deny_delete: true,
    deny_purge: false,
  } as StreamConfig;
  const wanted = [
    {
      ...base,
      name: EVENTS_STREAM,
      subjects: [EVENTS_SUBJECTS],
      max_bytes: sizes.maxEventsBytes,
      max_age: nanos(EVENTS_KEEP_MS),
    },
    {
      ...base,
      name: AUDIT_STREAM,
      subjects: [AUDIT_SUBJECTS],
      max_bytes: sizes.maxAuditBytes,
      max_age: nanos(AUDIT_KEEP_MS),
    },
  ];
  for (const config of wanted) {
    const existing = await manager.streams.info(config.name).catch(() => undefined);
    if (existing === undefined) await manager.streams.add(config as StreamConfig);
    else await manager.streams.update(config.name, config);
  }
}
