import { AUDIT_BACKENDS, type ColonnadeError } from '@colonnade/contracts';
import type { Logger, Metrics } from '@colonnade/service-kit';
import { GAP_REASONS, type Gap } from './gap.ts';

/** Everything that happens here and that an operator may want to see: one function each, its log line and its metric. */
export type Events = ReturnType<typeof createEvents>;

const OUTCOMES = ['taken', 'again', 'filtered', 'dead'] as const;

/** What became of events at a backend. */
export type Outcome = (typeof OUTCOMES)[number];

/** Codes that a failed batch is sure to have; others appear when they come. */
const CODES = ['unavailable', 'bus_unavailable', 'internal'] as const;

/** Seconds from the stream's acknowledgement to the backend's: a webhook may be hours behind. */
const DELAY_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 600, 3600, 86_400];
const SIZE_BUCKETS = [1, 4, 16, 64, 256, 400, 1024, 4096];

export function createEvents(logger: Logger, metrics: Metrics) {
  const counted = metrics.counter('audit_sink_events_total', 'Events, by backend and what became of them.', [
    'backend',
    'outcome',
  ]);
  const errors = metrics.counter('audit_sink_errors_total', 'Batches that failed and come again.', [
    'backend',
    'code',
  ]);
  const dropped = metrics.counter('audit_sink_dropped_total', 'Events a backend will never have.', [
    'backend',
    'reason',
  ]);
  const gaps = metrics.counter('audit_sink_gaps_total', 'Gap records written.', ['backend', 'reason']);
  const lag = metrics.gauge('audit_sink_lag', 'Events in the stream that a backend does not have yet.', [
    'backend',
  ]);
  const backlog = metrics.gauge('audit_sink_backlog_ratio', "The backlog's share of its limit.", ['backend']);
  const sizes = metrics.histogram('audit_sink_batch_events', 'Events in a batch.', ['backend'], SIZE_BUCKETS);
  const delays = metrics.histogram(
    'audit_sink_delay_seconds',
    'From the stream to the backend, for the oldest event of a batch.',
    ['backend'],
    DELAY_BUCKETS,
  );
  const failing = metrics.gauge('audit_sink_failing', '1 while a backend takes nothing.', ['backend']);
  const writer = metrics.gauge('audit_sink_file_writer', '1 on the replica that writes the file.', []);
  const rotations = metrics.counter('audit_sink_rotations_total', 'Rotations of the file.', []);
  const requests = metrics.counter(
    'audit_sink_webhook_requests_total',
    'Requests to the webhook, by answer.',
    ['answer'],
  );
  const ingested = metrics.counter('audit_sink_ingest_requests_total', 'EventLists offered, by answer.', [
    'code',
  ]);
  return {
    /** What an alert looks at is there before it happens: a series that begins at 1 has not risen. */
    beginsAtZero(backends: readonly string[]) {
      for (const backend of AUDIT_BACKENDS.filter((name) => backends.includes(name))) {
        for (const outcome of OUTCOMES) counted.inc({ backend, outcome }, 0);
        for (const code of CODES) errors.inc({ backend, code }, 0);
        for (const reason of GAP_REASONS[backend]) {
          gaps.inc({ backend, reason }, 0);
          dropped.inc({ backend, reason }, 0);
        }
        failing.set({ backend }, 0);
      }
    },
    batchTaken(backend: string, count: number, delayMs: number) {
      sizes.observe({ backend }, count);
      delays.observe({ backend }, Math.max(0, delayMs) / 1000);
    },
    counted(backend: string, outcome: Outcome, count: number) {
      if (count > 0) counted.inc({ backend, outcome }, count);
    },
    batchFailed(backend: string, error: ColonnadeError, attempt: number) {
      errors.inc({ backend, code: error.code });
      logger.warn({ backend, code: error.code, attempt, err: error }, 'a batch failed and comes again');
    },
    backendFailing(backend: string, error: unknown) {
      failing.set({ backend }, 1);
      errors.inc({ backend, code: 'unavailable' });
      logger.error({ backend, err: error }, 'the backend takes nothing');
    },
    backendWorks(backend: string) {
      failing.set({ backend }, 0);
      logger.info({ backend }, 'the backend takes events again');
    },
    gapWritten(gap: Gap) {
      gaps.inc({ backend: gap.backend, reason: gap.reason });
      dropped.inc({ backend: gap.backend, reason: gap.reason }, gap.count);
      logger.error({ ...gap }, 'gap record written');
    },
    gapRefused(gap: Pick<Gap, 'backend' | 'from' | 'to'>) {
      failing.set({ backend: gap.backend }, 1);
      logger.error(
        { ...gap },
        'records are gone from the stream that this file does not have; set AUDIT_LOG_ACCEPT_GAP_TO to go on',
      );
    },
    deadLetter(backend: string, seq: number, reason: string, detail: string) {
      counted.inc({ backend, outcome: 'dead' });
      logger.error({ backend, seq, reason, detail }, 'dead letter stored');
    },
    becameWriter(file: string, found: string, seq: number) {
      writer.set(1);
      failing.set({ backend: 'file' }, 0);
      logger.info({ file, found, seq }, 'writing the file');
    },
    waitingForLock(file: string) {
      writer.set(0);
      logger.info({ file }, 'another replica writes the file');
    },
    lockLost: (file: string) => logger.error({ file }, 'the lock was removed; nothing is written without it'),
    rotated(file: string) {
      rotations.inc();
      logger.info({ file }, 'file rotated');
    },
    replaced: (how: string) => logger.warn({ how }, 'the file was changed from outside'),
    removed: (files: readonly string[]) => {
      if (files.length > 0) logger.info({ files }, 'rotated files removed');
    },
    pruneFailed: (error: unknown) => logger.warn({ err: error }, 'rotated files could not be tidied'),
    anchorFailed: (error: unknown) => logger.warn({ err: error }, 'the chain could not be anchored'),
    lag(backend: string, count: number, ratio: number) {
      lag.set({ backend }, count);
      backlog.set({ backend }, ratio);
    },
    backlogAlert(backend: string, waiting: number, ratio: number) {
      logger.error({ backend, waiting, ratio }, 'the backlog is near its limit');
    },
    alertUntold: (error: unknown) =>
      logger.warn({ err: error }, 'the bus cannot be told of an alert: tried again'),
    kubeconfigBad: (error: unknown) =>
      logger.error({ err: error }, 'the kubeconfig of the webhook cannot be used'),
    lagUnknown: (error: unknown) => logger.warn({ err: error }, 'the state of the stream is unknown'),
    webhookAnswered: (answer: string) => requests.inc({ answer }),
    ingestAnswered: (code: number) => ingested.inc({ code: String(code) }),
    ingestFailed: (error: unknown) => logger.warn({ err: error }, 'an EventList was refused'),
  };
}
