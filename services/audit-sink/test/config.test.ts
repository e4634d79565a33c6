import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { settingsTable } from '@colonnade/service-kit';
import { auditSinkSettings, readAuditSinkConfig } from '../src/index.ts';

const good = { AUDIT_LOG_PATH: '-', NATS_NKEY_SEED: 'x' };

test('the README has every setting, with its default', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  for (const row of settingsTable(auditSinkSettings)) assert.ok(readme.includes(row), row);
  assert.equal(
    readme.match(/^\| `[A-Z_]+(?:_FILE` or `[A-Z_]+)?` \|/gmu)?.length,
    settingsTable(auditSinkSettings).length,
  );
});

test('defaults of the webhook are those of kube-apiserver', () => {
  const config = readAuditSinkConfig(good);
  assert.deepEqual(
    {
      size: config.webhookBatchMaxSize,
      wait: config.webhookBatchMaxWaitMs,
      qps: config.webhookThrottleQps,
      burst: config.webhookThrottleBurst,
      backoff: config.webhookInitialBackoffMs,
      truncate: config.webhookTruncate,
      event: config.webhookMaxEventBytes,
      batch: config.webhookMaxBatchBytes,
      age: config.logMaxAgeDays,
      backups: config.logMaxBackups,
      megabytes: config.logMaxSizeMb,
    },
    {
      size: 400,
      wait: 30_000,
      qps: 10,
      burst: 15,
      backoff: 10_000,
      truncate: false,
      event: 100 * 1024,
      batch: 10 * 1024 * 1024,
      age: 366,
      backups: 100,
      megabytes: 100,
    },
  );
});

for (const [name, changes, message] of [
  ['no path', { AUDIT_LOG_PATH: '' }, /AUDIT_LOG_PATH/u],
  ['a size of nothing', { AUDIT_LOG_MAXSIZE: '0' }, /AUDIT_LOG_MAXSIZE/u],
  ['another format', { AUDIT_LOG_FORMAT: 'xml' }, /AUDIT_LOG_FORMAT/u],
  ['a rate of nothing', { AUDIT_WEBHOOK_BATCH_THROTTLE_QPS: '0' }, /THROTTLE_QPS/u],
  [
    'a batch smaller than an event',
    { AUDIT_WEBHOOK_TRUNCATE_MAX_BATCH_SIZE: '2048' },
    /at least AUDIT_WEBHOOK/u,
  ],
  ['an endpoint that lets nobody in', { INGEST_PORT: '0' }, /INGEST_CLIENT_CA_FILE and INGEST_TOKEN/u],
] as const) {
  test(`${name} is refused`, () => {
    assert.throws(
      () => readAuditSinkConfig({ ...good, ...changes }),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'misconfigured');
        assert.match(error.message, message);
        return true;
      },
    );
  });
}
