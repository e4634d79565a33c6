import type { Logger, Metrics } from '@colonnade/service-kit';
import type { Entry } from './bridge/entry.ts';
import type { StreamFault } from './bridge/functions.ts';
import type { EntryOutcome } from './bridge/handle-entry.ts';

/** Everything that happens here and that an operator may want to see: one function each, its log line and its metric. */
export type Events = ReturnType<typeof createEvents>;

/** Our faults or our neighbours', as opposed to those of the one who asks. */
const TROUBLE: ReadonlySet<string> = new Set([
  'unavailable',
  'kms_unavailable',
  'kms_refused',
  'internal',
  'lost',
]);

const WARN_EVERY_MS = 1000;

export function createEvents(logger: Logger, metrics: Metrics) {
  return { ...requestEvents(logger, metrics), ...redisEvents(logger, metrics), ...estateEvents(metrics) };
}

function requestEvents(logger: Logger, metrics: Metrics) {
  const requests = metrics.counter('merger_requests_total', 'Requests of masters, by what they got.', [
    'code',
  ]);
  const seconds = metrics.histogram('merger_request_seconds', 'Time from taking a request to its reply.', [
    'code',
  ]);
  const claimed = metrics.counter('merger_claimed_total', 'Requests taken over from another merger.', []);
  const refusals = metrics.counter('merger_refusals_total', 'Refusals to be put on record.', ['code']);
  const busRequests = metrics.counter('merger_bus_requests_total', 'Requests on the bus.', [
    'endpoint',
    'code',
  ]);
  return {
    outcome({ entry, code, durationMs, error }: EntryOutcome) {
      requests.inc({ code });
      seconds.observe({ code }, durationMs / 1000);
      if (code === 'ok') return;
      const { master, id, deliveries } = entry;
      const facts = {
        code,
        master,
        entry: id,
        deliveries,
        durationMs: Math.round(durationMs),
        reason: error?.message,
      };
      if (code === 'internal') logger.error({ ...facts, err: error }, 'request failed');
      else if (TROUBLE.has(code)) logger.warn({ ...facts, err: error }, 'request failed');
      else logger.info(facts, 'request refused');
    },
    claimed({ master, id, deliveries }: Entry) {
      claimed.inc();
      logger.info({ master, entry: id, deliveries }, 'request taken over');
    },
    mergeRefused: (code: string) => refusals.inc({ code }),
    recordFailed: (error: unknown) => logger.error({ err: error }, 'refusals could not be put on record'),
    handled({ endpoint, code }: { endpoint: string; code: string }) {
      busRequests.inc({ endpoint, code });
    },
  };
}

function redisEvents(logger: Logger, metrics: Metrics) {
  const usable = metrics.gauge('merger_redis_usable', '1 while the bridge works with its Redis.', []);
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  const faults = metrics.counter('merger_redis_faults_total', 'Faults of the connection to Redis.', []);
  const streamFaults = metrics.counter(
    'merger_stream_faults_total',
    'Request streams that had to be put right.',
    ['kind'],
  );
  const dropped = metrics.counter('merger_dropped_total', 'Entries dropped from such streams.', ['kind']);
  return {
    streamFault({ master, kind, dropped: entries }: StreamFault) {
      streamFaults.inc({ kind });
      dropped.inc({ kind }, entries);
      logger.warn({ master, kind, dropped: entries }, 'request stream put right');
    },
    prepared() {
      usable.set(1);
      logger.info({}, 'bridge works');
    },
    refused(reason: string) {
      usable.set(0);
      logger.error({ reason }, 'bridge does not work with this Redis');
    },
    lost(reason: string) {
      usable.set(0);
      logger.warn({ reason }, 'bridge stopped');
    },
    redisFault(error: Error) {
      faults.inc();
      // While Redis is away there are many of them, and all the same.
      if (performance.now() - warnedAtMs < WARN_EVERY_MS) return;
      warnedAtMs = performance.now();
      logger.warn({ reason: error.message }, 'redis fault');
    },
  };
}

function estateEvents(metrics: Metrics) {
  const seconds = metrics.histogram('merger_estate_read_seconds', 'Time of one read of the store.', []);
  const pieces = metrics.counter(
    'merger_estate_pieces_total',
    'Pieces read from the store, not from the cache.',
    [],
  );
  const cleared = metrics.counter('merger_estate_cleared_total', 'Times the whole cache was dropped.', []);
  return {
    estateRead({ keys, durationMs, cleared: all }: { keys: number; durationMs: number; cleared: boolean }) {
      seconds.observe(durationMs / 1000);
      pieces.inc(keys);
      if (all) cleared.inc();
    },
  };
}
