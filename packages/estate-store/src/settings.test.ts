import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { readConfig } from '@colonnade/service-kit';
import { placeOf, storeSettings, withStoreUrl } from './settings.ts';

const read = (env: Record<string, string>) => readConfig(storeSettings, withStoreUrl(env));

test('a file is named by its path or by a url, whatever its name', () => {
  for (const path of ['/a/estate.db', '/a b/é%41?#.db']) {
    assert.deepEqual(placeOf(read({ STORE_PATH: path })), { kind: 'sqlite', path });
  }
  assert.deepEqual(placeOf(read({ STORE_URL: 'sqlite:///a/b.db' })), { kind: 'sqlite', path: '/a/b.db' });
  assert.deepEqual(placeOf(read({ STORE_URL: 'sqlite:///b', STORE_PATH: '/a' })), {
    kind: 'sqlite',
    path: '/b',
  });
});

test('a MongoDB is named by its hosts and database, with user and TLS beside', () => {
  const env = {
    STORE_URL: 'mongodb://a:1,b:2/colonnade?replicaSet=rs0',
    STORE_USER: 'api',
    STORE_PASSWORD: 'hidden',
  };
  const config = read({ ...env, STORE_CA_FILE: '/ca.pem' });
  assert.ok(!inspect(config).includes('hidden'));
  assert.deepEqual(placeOf(config), {
    ...{ kind: 'mongodb', url: 'mongodb://a:1,b:2/?replicaSet=rs0', database: 'colonnade' },
    ...{ user: 'api', password: 'hidden', authDatabase: undefined },
    tls: { caFile: '/ca.pem', certificateKeyFile: undefined },
  });
  const bare = placeOf(read({ STORE_URL: 'mongodb+srv://h/db' }));
  assert.ok(bare.kind === 'mongodb' && bare.url === 'mongodb+srv://h/' && !('tls' in bare));
});

test('anything else is refused, and not repeated', () => {
  const wrong = [
    '/a',
    'sqlite://a',
    'sqlite:relative.db',
    'sqlite://host/a',
    'sqlite:///',
    'mongodb://h',
    'mongodb://h/',
    'redis://hidden/x',
  ];
  for (const STORE_URL of wrong) {
    assert.throws(
      () => read({ STORE_URL }),
      (error: Error) => !error.message.includes('hidden'),
      STORE_URL,
    );
  }
  assert.throws(() => read({}), /STORE_URL: missing .*STORE_PATH/u);
});
