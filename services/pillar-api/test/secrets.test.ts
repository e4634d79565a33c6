import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { findTraces, searchFolder } from '../../../test/support/search-traces.ts';
import { plain, readStream, sendPlain, startWorld } from './support.ts';

/** Told in every way that can go wrong, and searched for in everything that is written. */
test('no plaintext of a secret, no token and no password is written anywhere', async () => {
  await using world = await startWorld({ env: { LOG_LEVEL: 'trace' } });
  const { admin } = world;
  const secrets = [
    'Пароль-ж-"кавычки"-0001',
    'plain-ascii-secret-0002',
    'refused-secret-000003',
    'nested-secret-0000004',
  ];
  const [first = '', second = '', refused = '', nested = ''] = secrets;
  const create = (body: object, headers?: Record<string, string>) =>
    sendPlain(admin, 'POST', '/pillars', { tgt_type: 'root', is_secret: true, ...body }, headers);

  const made = await create({ name: 'a', value: first }, { 'idempotency-key': 'k' });
  assert.equal(made.status, 201);
  await create({ name: 'a', value: first }, { 'idempotency-key': 'k' });
  assert.equal((await create({ name: 'b', value: { deep: [nested] } })).status, 201);
  assert.equal((await create({ name: 'c', value: second })).status, 201);
  for (const pid of [plain(made).pid]) {
    assert.equal(plain(await admin.send('POST', `/pillars/${pid}/reveal`)).value, first);
    await sendPlain(
      admin,
      'PUT',
      `/pillars/${pid}`,
      { value: refused },
      { 'if-match': made.headers.get('etag') ?? '' },
    );
  }
  for (const body of [
    { name: 'a', value: refused },
    { name: '_errors', value: refused },
    { name: 'd', value: { $enc: refused } },
  ]) {
    assert.ok((await create(body)).status >= 400);
  }
  await fetch(new URL('/pillars', world.api.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${world.adminToken}`, 'content-type': 'application/json' },
    body: `{"tgt_type":"root","is_secret":true,"name":"e","value":"${refused}`,
  });
  const master = plain(await admin.send('POST', '/masters', fromPlain({ id: 'm1' }))) as {
    token: { token: string };
    bridge: { redis_password: string };
  };
  const viewer = await world.tokenOf(['viewer']);
  const all = [...secrets, master.token.token, master.bridge.redis_password, viewer.token];

  await world.api.kill('SIGTERM');
  const files = await searchFolder(world.dir, all);
  assert.ok(files.files >= 4, 'the store and the logs were not there');
  assert.deepEqual(files.traces, []);
  // The first admin's token stands in its own file, and nowhere else.
  const admins = await searchFolder(world.dir, [world.adminToken]);
  assert.deepEqual(admins.traces, [`${path.join(world.dir, 'bootstrap-token')}: secret 0`]);
  for (const stream of ['EVENTS', 'AUDIT']) {
    const messages = await readStream(world.bus, stream);
    assert.ok(messages.length > 0);
    assert.deepEqual(
      messages.flatMap((m) => findTraces(stream, m.data, [...all, world.adminToken])),
      [],
    );
  }
});
