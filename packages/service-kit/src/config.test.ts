import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { ColonnadeError } from '@colonnade/contracts';
import { optionalSetting, readConfig, secretSetting, setting, settingsTable } from './config.ts';
import { oneOf, zFlag, zMs, zPort, zUrl } from './parsers.ts';

const settings = {
  port: setting('HTTP_PORT', zPort, { default: '8080', help: 'port' }),
  waitMs: setting('WAIT_MS', zMs, { help: 'how long' }),
  mode: setting('MODE', oneOf(['a', 'b']), { default: 'a', help: 'mode' }),
  strict: optionalSetting('STRICT', zFlag, { help: 'strict' }),
  url: optionalSetting('URL', zUrl('nats:', 'tls:'), { help: 'where' }),
  password: secretSetting('PASSWORD', { help: 'password' }),
};

describe('configuration', () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'colonnade-config-'));
  after(() => rmSync(dir, { recursive: true }));
  const file = (mode: number) => {
    const name = path.join(dir, `secret-${mode.toString(8)}`);
    writeFileSync(name, 'from-file\n', { mode });
    return name;
  };

  test('defaults, optional ones, and texts that are read', () => {
    const config = readConfig(settings, { WAIT_MS: '250', PASSWORD: 'hidden', HTTP_PORT: '' });
    assert.deepEqual([config.port, config.waitMs, config.mode, config.strict], [8080, 250, 'a', undefined]);
    assert.equal(config.password.reveal(), 'hidden');
  });

  test('all faults are reported together, and no text is repeated', () => {
    const env = { HTTP_PORT: '99999', WAIT_MS: '1s', MODE: 'oops', STRICT: 'yes', URL: 'http://x' };
    assert.throws(
      () => readConfig(settings, env),
      (error) => {
        assert.ok(error instanceof ColonnadeError && error.code === 'misconfigured');
        for (const name of ['HTTP_PORT', 'WAIT_MS', 'MODE', 'STRICT', 'URL', 'PASSWORD'])
          assert.match(error.message, new RegExp(name, 'u'));
        assert.doesNotMatch(error.message, /99999|1s|oops|yes|http:/u);
        return true;
      },
    );
  });

  for (const text of ['-1', '1.5', '0x10', '1e3', ' 1', 'ten', '١']) {
    test(`${JSON.stringify(text)} is no number`, () => {
      assert.throws(() => readConfig(settings, { WAIT_MS: text, PASSWORD: 'x' }), { code: 'misconfigured' });
    });
  }

  test('a secret comes from its file first, and the file must be private', () => {
    const env = { WAIT_MS: '1', PASSWORD: 'from-env', PASSWORD_FILE: file(0o600) };
    assert.equal(readConfig(settings, env).password.reveal(), 'from-file');
    assert.throws(() => readConfig(settings, { ...env, PASSWORD_FILE: file(0o644) }), /chmod 600/u);
    assert.throws(
      () => readConfig(settings, { ...env, PASSWORD_FILE: path.join(dir, 'absent') }),
      /PASSWORD/u,
    );
  });

  test('a secret does not show', () => {
    const { password } = readConfig(settings, { WAIT_MS: '1', PASSWORD: 'hidden' });
    for (const shown of [
      String(password),
      JSON.stringify({ password }),
      inspect({ password }),
      `${password}`,
    ]) {
      assert.ok(!shown.includes('hidden'), shown);
    }
  });

  test('the table for a README names each variable with its default', () => {
    assert.equal(settingsTable(settings)[0], '| `HTTP_PORT` | `8080` | port |');
    assert.match(settingsTable(settings)[5] ?? '', /`PASSWORD_FILE` or `PASSWORD`.*required/u);
  });
});
