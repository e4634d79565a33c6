import type { DeadLetterReason } from '@colonnade/contracts';
import type { RewrapProgress } from '@colonnade/estate-store';
import type { Logger, Metrics } from '@colonnade/service-kit';

/** One function for each thing that happens: the log line and the metric together. Labels stay low in cardinality. */
export type Events = ReturnType<typeof createEvents>;

export function createEvents(logger: Logger, metrics: Metrics) {
  const labels = ['method', 'route', 'status'] as const;
  const requests = metrics.counter('api_http_requests_total', 'HTTP requests answered', labels);
  const seconds = metrics.histogram('api_http_request_seconds', 'Time to answer', ['method', 'route']);
  const bus = metrics.counter('api_bus_requests_total', 'Requests on the bus', ['endpoint', 'code']);
  const suppressed = metrics.counter('api_denials_suppressed_total', 'Denials beyond the limit', ['kind']);
  const trimmed = metrics.counter('api_history_trimmed_total', 'Old versions removed', []);
  const rewraps = metrics.counter('api_rewrap_values_total', 'Stored values rewrapped', ['outcome']);
  const rewrapLeft = metrics.gauge('api_rewrap_left', 'Values under older keys, when last counted', []);
  const ofServices = metrics.counter('api_service_events_total', 'Events of services', ['outcome']);
  const inventories = metrics.counter('api_inventories_failed_total', 'Inventories refused', ['outcome']);
  const relay = createRelayEvents(logger, metrics);
  return {
    ...relay,
    answered(e: {
      method: string;
      route: string;
      status: number;
      durationMs: number;
      requestId: string;
    }): void {
      const { method, route, status, durationMs, requestId } = e;
      requests.inc({ method, route, status: String(status) });
      seconds.observe({ method, route }, durationMs / 1000);
      const level = status >= 500 ? 'warn' : 'debug';
      logger[level](
        { method, route, status, durationMs: Math.round(durationMs), requestId },
        'request answered',
      );
    },
    membershipsSettled(changed: number): void {
      if (changed > 0) logger.info({ changed }, 'memberships by rule settled at start');
    },
    membershipsFailed: (error: unknown): void =>
      logger.warn({ err: error }, 'memberships by rule could not be settled at start'),
    denialSuppressed(e: { kind: 'address' | 'user' }): void {
      suppressed.inc(e);
    },
    suppressedUnrecorded(e: { total: number; error: unknown }): void {
      logger.error({ total: e.total, err: e.error }, 'no audit record of the denials beyond the limit');
    },
    serviceEvent(outcome: 'stored' | 'duplicate' | DeadLetterReason): void {
      ofServices.inc({ outcome });
    },
    inventoryFailed(outcome: 'told' | 'suppressed'): void {
      inventories.inc({ outcome });
    },
    changesFailed(error: unknown): void {
      logger.warn({ err: error }, 'the store did not say what changed');
    },
    taskStatesFailed(error: unknown): void {
      logger.warn({ err: error }, 'which tasks live could not be told to other services');
    },
    taskWithoutIdentity(e: { task: string; code: string }): void {
      logger.info(e, 'a task was made without an identity');
    },
    faulted(e: { requestId: string; error: unknown }): void {
      logger.error({ requestId: e.requestId, err: e.error }, 'request failed');
    },
    busHandled(e: { endpoint: string; code: string; durationMs: number }): void {
      bus.inc({ endpoint: e.endpoint, code: e.code });
    },
    historyTrimmed(e: { removed: number; finished: boolean }): void {
      trimmed.inc({}, e.removed);
      if (e.removed > 0) logger.info(e, 'old versions removed');
    },
    rewrapped(e: { swapped: number; failed: number }): void {
      rewraps.inc({ outcome: 'ok' }, e.swapped);
      rewraps.inc({ outcome: 'failed' }, e.failed);
    },
    rewrapFaulty(e: { pid: string; code: string; kid: string }): void {
      logger.warn(e, 'a stored value does not open in its place, and is not rewrapped');
    },
    rewrapLeft(e: { left: number }): void {
      rewrapLeft.set(e.left);
    },
    rewrapEnded({ kid, rewrapped, failed, left }: RewrapProgress): void {
      logger.info({ kid, rewrapped, failed, left }, 'stored values rewrapped');
    },
    rewrapFailed(e: { error: { code: string } }): void {
      logger.warn({ err: e.error }, 'stored values could not be rewrapped; it is tried again');
    },
    keysReopened(e: { error: { code: string } }): void {
      logger.warn(
        { err: e.error },
        'values are stored under a key that opens nothing: lower the least version',
      );
    },
    historyTrimFailed(e: { error: { code: string } }): void {
      logger.warn({ err: e.error }, 'old versions could not be removed');
    },
    bootstrapped(e: { tokenId: string }): void {
      logger.info(e, 'first admin token registered');
    },
    importsSwept(e: { swept: number }): void {
      logger.info(e, 'unfinished imports swept');
    },
    minionRegistered(e: { master: string; minionId: string }): void {
      logger.info(e, 'minion registered on its first request');
    },
  };
}

function createRelayEvents(logger: Logger, metrics: Metrics) {
  const published = metrics.counter('api_relay_published_total', 'Events acknowledged by the stream', [
    'duplicate',
  ]);
  const failures = metrics.counter('api_relay_failures_total', 'Relay rounds that failed', ['code']);
  const leading = metrics.gauge('api_relay_leading', '1 while this process holds the lease of the relay', []);
  const rows = metrics.gauge('api_outbox_rows', 'Events that wait in the outbox, counted up to 1000', []);
  const age = metrics.gauge('api_outbox_oldest_age_seconds', 'Age of the oldest event that waits', []);
  return {
    relayed(e: { duplicate: boolean }): void {
      published.inc({ duplicate: String(e.duplicate) });
    },
    relayFailed(e: { error: { code: string }; retryInMs: number }): void {
      failures.inc({ code: e.error.code });
      logger.warn({ err: e.error, retryInMs: e.retryInMs }, 'relay round failed');
    },
    relayLeads(e: { fence: number | undefined }): void {
      leading.set(e.fence === undefined ? 0 : 1);
      logger.info(e, e.fence === undefined ? 'relay lease given up' : 'relay lease taken');
    },
    outboxSeen(e: { rows: number; oldestAgeMs: number }): void {
      rows.set(e.rows);
      age.set(e.oldestAgeMs / 1000);
    },
  };
}
