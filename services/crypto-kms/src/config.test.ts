import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { ENDPOINTS, JWKS_KEEP_S, JWKS_MAX_AGE_MS, WORKLOAD_SKEW_S } from '@colonnade/contracts';
import { settingsTable } from '@colonnade/service-kit';
import {
  isPrepublishedLongEnough,
  keyPollMs,
  kmsSettings,
  PREPUBLISH_LEAST_S,
  readKmsConfig,
} from './config.ts';

const readme = await readFile(path.join(import.meta.dirname, '..', 'README.md'), 'utf8');

test('the README names every setting as it is', () => {
  for (const row of settingsTable(kmsSettings)) assert.ok(readme.includes(row), row);
});

test('the README names every subject and every metric', async () => {
  const subjects = ENDPOINTS.filter((endpoint) => endpoint.server === 'crypto-kms').map(
    (endpoint) => endpoint.subject,
  );
  assert.ok(subjects.length >= 10);
  const events = await readFile(path.join(import.meta.dirname, 'events.ts'), 'utf8');
  const metrics = [...events.matchAll(/'(kms_\w+)'/gu)].map(([, name]) => `colonnade_${name}`);
  assert.ok(metrics.length >= 4);
  for (const name of [...subjects, ...metrics]) assert.ok(readme.includes(`\`${name}\``), name);
});

test('an empty variable is an unset one; the KEK cannot be printed', () => {
  const env = { KMS_STATE_DIR: '/state', NATS_NKEY_SEED: 'x', PILLARS_KEK_B64: '', PILLARS_KID: '' };
  const config = readKmsConfig(env);
  assert.equal(config.kekBase64, undefined);
  assert.equal(config.kid, 'core-kek-v1');
  const hidden = JSON.stringify(readKmsConfig({ ...env, PILLARS_KEK_B64: 'hush' }));
  assert.ok(!hidden.includes('hush'));
  assert.throws(
    () => readKmsConfig({ ...env, PILLARS_KID: 'k'.repeat(129) }),
    /PILLARS_KID: must be at most 128/u,
  );
});

test('a next key is known to whoever keeps the published ones before it signs, however many have kept them on the way', () => {
  const env = { KMS_STATE_DIR: '/state', NATS_NKEY_SEED: 'x' };
  const read = (seconds?: number) =>
    readKmsConfig({ ...env, KMS_KEY_PREPUBLISH_S: seconds === undefined ? undefined : `${seconds}` });
  for (const seconds of [undefined, PREPUBLISH_LEAST_S, 3600]) {
    const config = read(seconds);
    const keptMs = keyPollMs(config) + JWKS_MAX_AGE_MS + JWKS_KEEP_S * 1000;
    assert.ok(keptMs + WORKLOAD_SKEW_S * 1000 <= config.keyPrepublishS * 1000, `${keptMs} ms`);
    assert.ok(isPrepublishedLongEnough(config), String(seconds));
  }
  for (const seconds of [0, 1, 54, PREPUBLISH_LEAST_S - 1])
    assert.ok(!isPrepublishedLongEnough(read(seconds)), String(seconds));
});
