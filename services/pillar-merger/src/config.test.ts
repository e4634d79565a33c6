import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { settingsTable } from '@colonnade/service-kit';
import { mergerSettings, readMergerConfig } from './config.ts';

test('the README names every setting as it is', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  for (const row of settingsTable(mergerSettings)) assert.ok(readme.includes(row), row);
});

test('every fault of the environment is named at once', () => {
  const env = {
    REDIS_URL: 'http://x',
    CACHE: 'maybe',
    MERGER_CLAIM_IDLE_MS: '5',
    MERGER_CONCURRENCY: '0',
    REDIS_SENTINELS: 'a,b',
  };
  assert.throws(
    () => readMergerConfig(env),
    (thrown) => {
      assert.ok(thrown instanceof ColonnadeError && thrown.code === 'misconfigured');
      for (const name of ['STORE_PATH', 'NATS_NKEY_SEED', ...Object.keys(env)]) {
        assert.ok(thrown.message.includes(name), name);
      }
      return true;
    },
  );
});

test('the defaults claim within a third of the usual time of a request', () => {
  const config = readMergerConfig({ STORE_PATH: '/estate', NATS_NKEY_SEED: 'x' });
  assert.equal(config.pillarenvPolicy, 'entitled');
  assert.ok(config.claimIdleMs <= 2000 / 3);
});
