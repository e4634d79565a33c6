import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { settingsTable } from '@colonnade/service-kit';
import { hookRunnerSettings, readHookRunnerConfig } from '../src/index.ts';

const good = { HOOKS_DIR: '/hooks.d', HOOKS_STATE_DIR: '/state', NATS_NKEY_SEED: 'x' };

test('the README has every setting, with its default', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const rows = settingsTable(hookRunnerSettings);
  for (const row of rows) assert.ok(readme.includes(row), row);
  assert.equal(readme.match(/^\| `[A-Z_]+(?:_FILE` or `[A-Z_]+)?` \|/gmu)?.length, rows.length);
});

test('lists are separated by commas', () => {
  const config = readHookRunnerConfig({
    ...good,
    HOOKS_IGNORE_SUFFIXES: '.off, ~',
    HOOKS_ENV: 'TZ,http_proxy',
  });
  assert.deepEqual(config.ignoredSuffixes, ['.off', '~']);
  assert.deepEqual(config.allowedEnv, ['TZ', 'http_proxy']);
});

for (const [name, changes, message] of [
  ['no folder of hooks', { HOOKS_DIR: '' }, /HOOKS_DIR/u],
  ['no state', { HOOKS_STATE_DIR: '' }, /HOOKS_STATE_DIR/u],
  ['a variable that is none', { HOOKS_ENV: 'TZ,A=B' }, /HOOKS_ENV/u],
  ['nothing at once', { HOOKS_CONCURRENCY: '0' }, /HOOKS_CONCURRENCY/u],
  ['a history shorter than the stream', { HOOKS_HISTORY_DAYS: '7' }, /HOOKS_HISTORY_DAYS/u],
  ['output without bound', { HOOKS_OUTPUT_BYTES: '1048577' }, /HOOKS_OUTPUT_BYTES/u],
] as const) {
  test(`${name} is refused`, () => {
    assert.throws(
      () => readHookRunnerConfig({ ...good, ...changes }),
      (error: Error & { code?: string }) => {
        assert.equal(error.code, 'misconfigured');
        assert.match(error.message, message);
        return true;
      },
    );
  });
}
