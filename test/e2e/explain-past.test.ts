import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Explained } from '@colonnade/contracts';
import { fromPlain, toPlain } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';

const SECRET = 'correct horse battery staple';
const MINION = { master: 'm1', minion_id: 'web' };
const root = { tgt_type: 'root' };
const web = { tgt_type: 'collection', collection_id: 'web' };
const own = { tgt_type: 'minion', ...MINION };

describe('what a minion would have got at a clock', () => {
  let stack: TestStack;
  /** What was explained at the time, by clock. */
  const then = new Map<number, Explained>();

  const send = async (method: string, url: string, body?: unknown, etag?: string) => {
    const headers: Record<string, string> = etag === undefined ? {} : { 'if-match': etag };
    const sent = body === undefined ? undefined : fromPlain(body);
    const { value } = await stack.api.call(method, url, sent, headers);
    return toPlain(value ?? null) as Record<string, unknown>;
  };
  const explain = (more: Record<string, string> = {}) =>
    send('GET', `/explain?${new URLSearchParams({ ...MINION, ...more })}`) as unknown as Promise<Explained>;
  const preview = (body: object) =>
    send('POST', '/explain/preview', { ...MINION, ...body }) as unknown as Promise<Explained>;
  const create = (target: object, name: string, value: unknown, is_secret = false) =>
    send('POST', '/pillars', { ...target, name, value, is_secret });
  const onPillar = async (method: string, pid: unknown, action: string, body?: unknown) => {
    const { etag } = await send('GET', `/pillars/${pid}`);
    return await send(method, `/pillars/${pid}${action}`, body, String(etag));
  };
  const note = async () => {
    const found = await explain();
    then.set(Number(found.clock), found);
    return Number(found.clock);
  };
  /** Without what only a look back has, or lacks: a purged value. */
  const told = ({ keys }: Explained) =>
    keys.map(({ purged: _, winner, overrode, ...key }) => ({
      ...key,
      from: [winner, ...overrode].map(({ version: __, ...origin }) => origin),
    }));

  before(async () => {
    stack = await stackForTests({ env: { HISTORY_KEEP_VERSIONS: '2', HISTORY_RUN_MS: '0' } });
    await stack.addMaster('m1');
    const write = writeEstate(stack.api);
    await write.collection('eu');
    await write.collection('web', 'eu');
    await write.minion('m1', 'web', ['web']);
  });
  after(() => stack[Symbol.asyncDispose]());

  test('every clock says what was explained then: made, changed, moved, deleted, restored, secret', async () => {
    const motd = await create(root, 'motd', { text: 'one', level: 1.5 });
    await note();
    const level = await create(web, 'level', 1);
    await create(own, 'level', 2);
    await note();
    await onPillar('PUT', motd.pid, '', { value: 'two' });
    await note();
    await create(root, 'password', SECRET, true);
    await onPillar('POST', level.pid, '/move', root);
    await note();
    await onPillar('POST', level.pid, '/rename', { name: 'depth' });
    await note();
    await onPillar('DELETE', motd.pid, '');
    await note();
    const back = { tick: Number(motd.clock) };
    await stack.api.call('POST', `/pillars/${motd.pid}/restore`, fromPlain(back), { 'if-none-match': '*' });
    await note();
    assert.equal(then.size, 7);
    for (const [clock, noted] of then) {
      const found = await explain({ at: String(clock) });
      assert.deepEqual(told(found), told(noted), `at ${clock}`);
      assert.deepEqual([Number(found.at), found.scopes], [clock, noted.scopes]);
      assert.ok(!JSON.stringify(found).includes('horse'));
    }
    const { keys } = await explain({ at: String(motd.clock), values: 'omit' });
    assert.deepEqual(
      keys.map(({ name, value, winner }) => [name, value, Number(winner.version)]),
      [['motd', null, Number(motd.clock)]],
    );
    assert.deepEqual((await explain({ at: '1' })).keys, []);
  });

  test('a time is the last clock up to it, and the future is refused', async () => {
    const [first = 0, second = 0] = then.keys();
    const { items } = await send('POST', '/pillars/list', { tgt_type: 'minion' });
    const [item] = items as { created_at: string }[];
    const found = await explain({ at: item?.created_at ?? '' });
    assert.ok(Number(found.at) >= second && Number(found.at) > first);
    assert.deepEqual((await explain({ at: '2001-01-01T00:00:00.000Z' })).keys, []);
    const refused = { code: 'unprocessable', field: 'at' };
    await assert.rejects(explain({ at: '99999' }), refused);
    await assert.rejects(explain({ at: '2999-01-01T00:00:00.000Z' }), refused);
    await assert.rejects(explain({ at: 'yesterday' }), refused);
  });

  test('memberships are those of now, or those that are supposed, with changes on top', async () => {
    const clock = await note();
    const before = then.get(clock);
    assert.ok(before);
    await writeEstate(stack.api).minion('m1', 'web', ['eu']);
    const { scopes, at, clock: now } = await explain({ at: String(clock) });
    assert.ok(!scopes.join().includes('collection:web') && Number(at) === clock && Number(now) > clock);
    const supposed = await preview({ at: clock, collections: ['web'] });
    assert.deepEqual(told(supposed), told(before));
    const { items } = await send('POST', '/pillars/list', { ...root, name: 'depth' });
    const [depth] = items as { pid: string }[];
    await onPillar('DELETE', depth?.pid, '');
    const changes = [
      { op: 'delete', ...root, name: 'depth' },
      { op: 'set', ...web, name: 'motd', value: 'mine' },
      { op: 'set', ...root, name: 'password', value: 'not needed' },
    ];
    const changed = await preview({ at: clock, collections: ['web'], changes });
    assert.deepEqual(
      changed.keys.map(({ name, value, winner }) => [name, value, winner.change && Number(winner.change)]),
      [
        ['level', 2, undefined],
        ['motd', 'mine', 1],
        ['password', '*******', 2],
      ],
    );
    await assert.rejects(
      preview({ changes: changes.slice(0, 1) }),
      { field: 'changes.0.name' },
      'now it is gone',
    );
  });

  test('a value that was purged is said to be, and what retention removed names the oldest clock', async () => {
    const sealed = await create(root, 'token', SECRET);
    const plain = await note();
    await onPillar('POST', sealed.pid, '/seal');
    const found = (await explain({ at: String(plain) })).keys.find(({ name }) => name === 'token');
    assert.deepEqual([found?.value, found?.purged, found?.is_secret], [null, true, false]);

    const often = await create(root, 'often', 1);
    for (const value of [2, 3, 4]) await onPillar('PUT', often.pid, '', { value });
    const newest = await note();
    await send('POST', '/history/retention');
    let oldest = 0;
    await assert.rejects(explain({ at: String(Number(often.clock)) }), (error: Error & { code: string }) => {
      oldest = Number(/keeps it since clock (\d+), 20/u.exec(error.message)?.[1]);
      return error.code === 'conflict';
    });
    assert.equal(oldest, newest - 1);
    const kept = (await explain({ at: String(oldest) })).keys.find(({ name }) => name === 'often');
    assert.equal(kept?.value, 3);
    await assert.rejects(explain({ at: String(oldest - 1) }), { code: 'conflict' });
  });
});
