import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuditWatch } from '@colonnade/audit';
import { createLogger, createMetrics } from '@colonnade/service-kit';
import { createEvents } from './events.ts';

test('what alerts look at is there, at 0, before anything happens', async () => {
  const logger = createLogger({ service: 'test', level: 'silent' });
  const metrics = createMetrics('audit-sink');
  createAuditWatch(logger, metrics);
  createEvents(logger, metrics).beginsAtZero(['file', 'webhook']);
  const lines = (await metrics.render())
    .split('\n')
    .map((line) => line.replace(/,?service="audit-sink"/u, ''));
  for (const series of [
    'audit_sink_events_total{backend="file",outcome="dead"}',
    'audit_sink_errors_total{backend="file",code="unavailable"}',
    'audit_sink_errors_total{backend="webhook",code="unavailable"}',
    'audit_sink_errors_total{backend="webhook",code="internal"}',
    'audit_sink_dropped_total{backend="webhook",reason="backlog_limit"}',
    'audit_sink_dropped_total{backend="file",reason="lost_from_stream"}',
    'audit_sink_gaps_total{backend="webhook",reason="backlog_limit"}',
    'audit_sink_gaps_total{backend="file",reason="file_shrank"}',
    'audit_sink_failing{backend="file"}',
    'audit_failures_total{stage="RequestReceived"}',
    'audit_failures_total{stage="batch"}',
    'audit_policy_loads_total{outcome="refused"}',
    'audit_dropped_total{}',
    'audit_rejected_total{}',
  ]) {
    assert.ok(lines.includes(`colonnade_${series} 0`), series);
  }
});

test('a backend that is not there has no series', async () => {
  const metrics = createMetrics('audit-sink');
  createEvents(createLogger({ service: 'test', level: 'silent' }), metrics).beginsAtZero(['file']);
  assert.doesNotMatch(await metrics.render(), /backend="webhook"/u);
});
