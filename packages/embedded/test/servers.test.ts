import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile, stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { describe, it } from 'node:test';
import { Redis } from 'ioredis';
import { findForTests, natsForTests, redisForTests, skipWithout } from '../../../test/support/servers.ts';
import { tempDir } from '../../../test/support/temp.ts';
import { type RedisServer, startNats, startRedis } from '../src/servers/index.ts';

const skip = await skipWithout('nats', 'redis');

/** As the administrator; failures show at the first command. */
function connectAdmin(redis: RedisServer): Redis & AsyncDisposable {
  const { host, port, adminUser: username, adminPassword: password } = redis;
  const client = new Redis({ host, port, username, password, maxRetriesPerRequest: 0, lazyConnect: true });
  client.on('error', () => {});
  return Object.assign(client, { [Symbol.asyncDispose]: async () => client.disconnect() });
}

/** What a server says to whoever connects. */
async function greeting(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const [text] = await once(socket, 'data');
  socket.destroy();
  return String(text);
}

describe('startNats', { skip }, () => {
  it('listens on loopback only and comes back at the same port', async () => {
    await using nats = await natsForTests({ configText: 'host: 0.0.0.0\nport: 4222' });
    const { port, pid } = nats;
    assert.notEqual(port, 4222);
    assert.match(await readFile(nats.logFile, 'utf8'), new RegExp(`connections on 127.0.0.1:${port}`));
    await nats.kill('SIGKILL');
    await nats.restart();
    assert.equal(nats.port, port);
    assert.notEqual(nats.pid, pid);
    assert.match(await greeting(port), new RegExp(`^INFO .*"port":${port}`));
  });

  it('keeps its configuration and store from other users of the machine', async () => {
    await using dir = await tempDir('nats');
    const { path: binary } = await findForTests('nats');
    await using nats = await startNats({ binary, dir: dir.path, configText: '' });
    assert.equal((await stat(path.join(dir.path, 'nats.conf'))).mode & 0o777, 0o600);
    assert.equal((await stat(path.join(dir.path, 'jetstream'))).mode & 0o777, 0o700);
    assert.equal((await stat(nats.logFile)).mode & 0o777, 0o600);
  });

  it('says why it does not start', async () => {
    await assert.rejects(natsForTests({ configText: 'authorization { oops' }), {
      name: 'ColonnadeError',
      code: 'unavailable',
      message: /nats-server ended with exit code 1; the end of .*nats\.log/s,
    });
  });
});

describe('startRedis', { skip }, () => {
  it('lets nobody in without a name, and the administrator with the generated password', async () => {
    await using redis = await redisForTests();
    await using admin = connectAdmin(redis);
    assert.equal(await admin.ping(), 'PONG');
    await using nobody = connectAdmin({ ...redis, adminUser: 'default', adminPassword: '' });
    await assert.rejects(nobody.ping());
    assert.ok(
      !JSON.stringify(redis).includes(redis.adminPassword),
      'the password shows when the server is printed',
    );
  });

  it('is set up so that nothing reaches a disk', async () => {
    await using dir = await tempDir('redis');
    const { path: binary } = await findForTests('redis');
    await using redis = await startRedis({ binary, dir: dir.path });
    await using admin = connectAdmin(redis);
    const setting = async (name: string) => ((await admin.config('GET', name)) as string[])[1];
    assert.equal(await setting('save'), '');
    assert.equal(await setting('appendonly'), 'no');
    assert.equal(await setting('repl-diskless-sync'), 'yes');
    assert.equal(await setting('maxmemory-policy'), 'noeviction');
    assert.equal(await setting('bind'), '127.0.0.1');
    await admin.set('plain', 'text');
    await redis.kill('SIGTERM');
    assert.deepEqual((await readdir(dir.path)).sort(), ['redis.conf', 'redis.log', 'users.acl']);
    const files = ['redis.conf', 'users.acl'].map((file) => readFile(path.join(dir.path, file), 'utf8'));
    assert.ok(!(await Promise.all(files)).join('').includes(redis.adminPassword));
    assert.equal((await stat(path.join(dir.path, 'users.acl'))).mode & 0o777, 0o600);
  });

  it('keeps its port and saved users over a restart, and forgets its data', async () => {
    await using redis = await redisForTests({ aclUsers: ['user first on nopass +ping'] });
    await using admin = connectAdmin(redis);
    await admin.acl('SETUSER', 'second', 'on', 'nopass', '+ping');
    await admin.acl('SAVE');
    await admin.set('key', 'value');
    const { port } = redis;
    await redis.restart();
    await using again = connectAdmin(redis);
    assert.equal(redis.port, port);
    const users = (await again.acl('USERS')) as string[];
    assert.deepEqual(users.sort(), ['colonnade-admin', 'default', 'first', 'second']);
    assert.equal(await again.get('key'), null);
  });

  it('listens on a unix socket too when asked', async () => {
    await using redis = await redisForTests({ unixSocket: true });
    assert.ok((await stat(redis.unixSocket as string)).isSocket());
  });

  it('refuses a rule that is more than one line, and a port that is taken', async () => {
    await assert.rejects(redisForTests({ aclUsers: ['user a\nuser b on nopass +@all'] }), {
      code: 'bad_request',
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    await using taken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1', resolve);
    await promise;
    const { port } = taken.address() as { port: number };
    await assert.rejects(redisForTests({ port }), { code: 'unavailable', message: /Address already in use/ });
  });
});
