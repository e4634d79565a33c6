import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { clientOptions } from './options.ts';

const plain = { url: 'mongodb://a:1,b:2/?replicaSet=rs0', database: 'colonnade' };

test('writes are durable on a majority, and nothing waits for ever', () => {
  const options = clientOptions(plain);
  assert.deepEqual(options.writeConcern, { w: 'majority', journal: true, wtimeoutMS: 5000 });
  assert.deepEqual(options.readConcern, { level: 'majority' });
  assert.equal(options.readPreference, 'primary');
  assert.equal(options.maxPoolSize, 50);
  for (const name of [
    'serverSelectionTimeoutMS',
    'connectTimeoutMS',
    'socketTimeoutMS',
    'waitQueueTimeoutMS',
  ])
    assert.ok(Number((options as Record<string, unknown>)[name]) > 0, name);
});

test('user and password are taken, and TLS is spoken', () => {
  const tls = { caFile: '/ca.pem', certificateKeyFile: '/me.pem' };
  const options = clientOptions({ ...plain, user: 'u', password: 'p', tls });
  assert.deepEqual(options.auth, { username: 'u', password: 'p' });
  assert.equal(options.authSource, 'admin');
  assert.equal(options.tls, true);
});

test('a url that would weaken a promise, or carries a password, is refused and not repeated', () => {
  const refused = [
    ...['mongodb://h/?w=1', 'mongodb://h/?journal=false', 'mongodb://h/?readPreference=secondary'],
    ...['mongodb://h/?tlsInsecure=true', 'mongodb://h/?tlsAllowInvalidCertificates=true'],
    ...[
      'mongodb://h/?retryWrites=false',
      'mongodb://me:hidden@h/',
      'mongodb://me@h/',
      'http://h/',
      'mongodb://',
    ],
  ];
  for (const url of refused) {
    assert.throws(
      () => clientOptions({ ...plain, url }),
      (error) => {
        assert.ok(error instanceof ColonnadeError && error.code === 'misconfigured', url);
        assert.doesNotMatch(error.message, /hidden/u);
        return true;
      },
    );
  }
  for (const url of ['mongodb://h', 'mongodb+srv://h/db?tls=true&authSource=admin', plain.url]) {
    assert.ok(clientOptions({ ...plain, url }));
  }
  for (const database of ['', 'a b', 'a.b', '$x', 'x'.repeat(64)]) {
    assert.throws(() => clientOptions({ ...plain, database }), { code: 'misconfigured' }, database);
  }
});
