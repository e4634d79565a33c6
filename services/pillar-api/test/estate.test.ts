import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type ApiWorld, assertProblem, etagOfAnswer, plain, sendPlain, startWorld } from './support.ts';

describe('the estate over HTTP', () => {
  let world: ApiWorld;
  before(async () => {
    world = await startWorld();
  });
  after(() => world[Symbol.asyncDispose]());

  test('a whole estate is made, read, changed and taken down', async () => {
    const { admin } = world;
    const master = await sendPlain(admin, 'POST', '/masters', { id: 'm1', envs: ['prod'] });
    assert.equal(master.status, 201, JSON.stringify(plain(master)));
    const root = await sendPlain(admin, 'POST', '/collections', { id: 'c1', name: 'root' });
    assert.equal(root.status, 201, JSON.stringify(plain(root)));
    const child = await sendPlain(admin, 'POST', '/collections', {
      id: 'c2',
      name: 'child',
      parent_id: 'c1',
    });
    assert.equal(child.status, 201);
    const minion = await sendPlain(
      admin,
      'PUT',
      '/masters/m1/minions/web-1',
      { collections: ['c1', 'c2'] },
      { 'if-none-match': '*' },
    );
    assert.equal(minion.status, 201, JSON.stringify(plain(minion)));
    const pillar = await sendPlain(admin, 'POST', '/pillars', {
      tgt_type: 'root',
      name: 'a',
      value: { b: 1 },
    });
    assert.equal(pillar.status, 201, JSON.stringify(plain(pillar)));
    const secret = await sendPlain(admin, 'POST', '/pillars', {
      tgt_type: 'minion',
      minion_id: 'web-1',
      master: 'm1',
      name: 's',
      value: 'hunter2-hunter2',
      is_secret: true,
    });
    assert.equal(secret.status, 201, JSON.stringify(plain(secret)));
    assert.equal(plain(secret).value, '*******');
    assert.equal(plain(secret).pillarenv, 'minion_id:web-1;master:m1');
    const { pid } = plain(secret);
    const revealed = await admin.send('POST', `/pillars/${pid}/reveal`);
    assert.equal(plain(revealed).value, 'hunter2-hunter2', JSON.stringify(plain(revealed)));
    assert.equal(revealed.headers.get('cache-control'), 'no-store');
    const put = await sendPlain(
      admin,
      'PUT',
      `/pillars/${pid}`,
      { value: 1 },
      { 'if-match': etagOfAnswer(secret) },
    );
    assertProblem(put, 409, 'secret_immutable');
    const list = await sendPlain(admin, 'POST', '/pillars/list', {});
    assert.equal((plain(list).items as unknown[]).length, 2);
    const gone = await admin.send('DELETE', `/pillars/${pid}`, undefined, {
      'if-match': etagOfAnswer(secret),
    });
    assert.equal(gone.status, 204);
    const ops = await fetch(new URL('/readyz', world.api.url));
    assert.deepEqual([ops.status, await ops.json()].slice(0, 1), [200]);
  });
});
