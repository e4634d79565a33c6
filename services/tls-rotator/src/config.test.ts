import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { settingsTable } from '@colonnade/service-kit';
import { readAddresses } from './addresses.ts';
import { readTlsRotatorConfig, tlsRotatorSettings } from './config.ts';

const good = { ALLOWED_SOURCE_NAMESPACES: 'ingress', SPOOL_DIR: 'spool', NATS_NKEY_SEED: 'x' };

test('the table of settings is that of the code', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8');
  const section = readme.split('## Settings\n')[1]?.split('\n## ')[0] ?? '';
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2);
  assert.deepEqual(rows, [...settingsTable(tlsRotatorSettings)]);
});

test('faults are reported together', () => {
  const env = {
    ...good,
    ALLOWED_NODE_PATHS: 'etc',
    ALLOWED_NODE_ADDRESSES: 'node-1',
    SECRET_WRITERS: '0',
    LEASE_MS: '1',
  };
  assert.throws(() => readTlsRotatorConfig(env), /4 fault/u);
  assert.equal(readTlsRotatorConfig(good).nodeAddresses, undefined);
});

test('addresses are taken from networks only', () => {
  const allowed = readAddresses('10.0.0.0/24, 10.1.0.7,fd00::/64');
  for (const address of ['10.0.0.1', '10.1.0.7', 'fd00::1']) assert.ok(allowed.check(address), address);
  for (const address of ['10.0.1.1', '10.1.0.8', 'fd01::1', 'node-1', '10.0.0', ''])
    assert.ok(!allowed.check(address), address);
  for (const text of ['10.0.0.0/33', '10.0.0.0/', 'x', '10.0.0.0/8/9', 'fd00::/129'])
    assert.throws(() => readAddresses(text), text);
});
