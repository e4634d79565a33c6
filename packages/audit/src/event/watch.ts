import { AUDIT_STAGES, type AuditStage } from '@colonnade/contracts';
import type { Logger, Metrics } from '@colonnade/service-kit';
import type { AuditLevel } from '../policy/types.ts';

/** Told of everything that happens to records. Every service logs and counts it alike, with `createAuditWatch`. */
export type AuditWatch = {
  /** Acknowledged by the stream, `ms` after it was sent. */
  stored(e: { stage: AuditStage; level: AuditLevel; ms: number }): void;
  storedInBatch(e: { count: number; ms: number }): void;
  failed(e: { stage: AuditStage | 'batch'; error: unknown }): void;
  /** Not recorded for good: no room, or the process had to end. */
  dropped(e: { count: number }): void;
  /** Records that wait to be sent in the background. */
  waiting(e: { count: number }): void;
  /** Refused, or an answer withheld, because there was no record. */
  rejected(e: { auditID: string; error: unknown }): void;
  policyLoaded(e: { rules: number; warnings: readonly string[] }): void;
  /** A policy that cannot be used; the one before it stays. */
  policyRefused(e: { error: unknown }): void;
};

export const silentWatch: AuditWatch = {
  stored() {},
  storedInBatch() {},
  failed() {},
  dropped() {},
  waiting() {},
  rejected() {},
  policyLoaded() {},
  policyRefused() {},
};

/** Metrics `colonnade_audit_*` and a log line for whatever is wrong. */
export function createAuditWatch(logger: Logger, metrics: Metrics): AuditWatch {
  const events = metrics.counter('audit_events_total', 'Audit records stored', ['stage', 'level']);
  const seconds = metrics.histogram('audit_store_seconds', 'Time until a record is acknowledged', []);
  const batches = metrics.histogram(
    'audit_batch_records',
    'Records stored with one acknowledgement',
    [],
    SIZES,
  );
  const failures = metrics.counter('audit_failures_total', 'Audit records not acknowledged', ['stage']);
  const lost = metrics.counter('audit_dropped_total', 'Audit records given up', []);
  const waiting = metrics.gauge('audit_waiting', 'Audit records that wait to be sent', []);
  const refused = metrics.counter('audit_rejected_total', 'Requests refused for want of a record', []);
  const reloads = metrics.counter('audit_policy_loads_total', 'Audit policies read', ['outcome']);
  // What an alert looks at is there before it happens: a series that begins at 1 has not risen.
  for (const stage of [...AUDIT_STAGES, 'batch']) failures.inc({ stage }, 0);
  for (const outcome of ['loaded', 'refused']) reloads.inc({ outcome }, 0);
  return {
    stored({ stage, level, ms }) {
      events.inc({ stage, level });
      seconds.observe(ms / 1000);
    },
    storedInBatch({ count, ms }) {
      batches.observe(count);
      seconds.observe(ms / 1000);
    },
    failed({ stage, error }) {
      failures.inc({ stage });
      logger.warn({ stage, err: error }, 'audit record not acknowledged');
    },
    dropped({ count }) {
      lost.inc(count);
      logger.error({ count }, 'audit records given up');
    },
    waiting: ({ count }) => waiting.set(count),
    rejected({ auditID, error }) {
      refused.inc();
      logger.error({ auditID, err: error }, 'request refused, it could not be put on record');
    },
    policyLoaded({ rules, warnings }) {
      reloads.inc({ outcome: 'loaded' });
      logger[warnings.length === 0 ? 'info' : 'warn']({ rules, warnings }, 'audit policy loaded');
    },
    policyRefused({ error }) {
      reloads.inc({ outcome: 'refused' });
      logger.error({ err: error }, 'audit policy refused, the one before it stays');
    },
  };
}

const SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500];
