import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ApiClient } from '@colonnade/embedded';
import { type ApiWorld, assertProblem, plain, sendPlain, startWorld } from './support.ts';

/** Master `m1` has these, with their collections; `m2` has one that is called like one of them. */
const MINIONS: Readonly<Record<string, readonly string[]>> = {
  'db-1': [],
  'web-1': ['web'],
  'web-2': ['web', 'shop'],
  'shop-1': ['eu'],
  // Before and behind it, as UTF-16 and as UTF-8 have it.
  '\u{ff5e}': ['web'],
  '\u{1f600}': [],
};

describe('the minions a pillar reaches', () => {
  let world: ApiWorld;

  const send = async (method: string, url: string, body: unknown, headers?: Record<string, string>) => {
    const answer = await sendPlain(world.admin, method, url, body, headers);
    assert.ok(answer.status < 300, JSON.stringify(plain(answer)));
    return plain(answer);
  };
  const make = async (body: Record<string, unknown>) =>
    String((await send('POST', '/pillars', { name: 'n', value: 1, ...body })).pid);
  const put = (master: string, id: string, collections: readonly string[]) =>
    send(
      'PUT',
      `/masters/${master}/minions/${encodeURIComponent(id)}`,
      { collections },
      { 'if-none-match': '*' },
    );
  /** All pages, as `master/minion` or `master/minion via collection`. */
  const reach = async (pid: string, limit = 500, client: ApiClient = world.admin) => {
    const found: string[] = [];
    let cursor: unknown;
    do {
      const more = typeof cursor === 'string' ? `&cursor=${cursor}` : '';
      const page = plain(await client.call('GET', `/pillars/${pid}/reach?limit=${limit}${more}`));
      const items = page.items as { master: string; minion_id: string; collection: string | null }[];
      assert.ok(items.length <= limit);
      for (const { master, minion_id, collection } of items) {
        found.push(`${master}/${minion_id}${collection === null ? '' : ` via ${collection}`}`);
      }
      cursor = page.next_cursor;
    } while (cursor !== null);
    return found;
  };

  before(async () => {
    world = await startWorld();
    await send('POST', '/masters', { id: 'm1' });
    await send('POST', '/masters', { id: 'm2' });
    await send('POST', '/collections', { id: 'eu', name: 'Europe' });
    await send('POST', '/collections', { id: 'web', name: 'Web', parent_id: 'eu' });
    await send('POST', '/collections', { id: 'shop', name: 'Shop', parent_id: 'web' });
    await send('POST', '/collections', { id: 'us', name: 'America' });
    for (const [id, collections] of Object.entries(MINIONS)) await put('m1', id, collections);
    await put('m2', 'web-1', ['us']);
    await send('POST', '/tasks/templates', { id: 'tpl', name: 'Any', schema: true });
  });
  after(() => world[Symbol.asyncDispose]());

  test('of the root all, of a minion itself, of a template none', async () => {
    const root = await make({ tgt_type: 'root' });
    const all = ['db-1', 'shop-1', 'web-1', 'web-2', '\u{ff5e}', '\u{1f600}'].map((id) => `m1/${id}`);
    assert.deepEqual(await reach(root), [...all, 'm2/web-1']);
    assert.deepEqual(await reach(root, 2), [...all, 'm2/web-1']);
    const minion = await make({ tgt_type: 'minion', minion_id: 'web-1', master: 'm2' });
    assert.deepEqual(await reach(minion), ['m2/web-1']);
    assert.deepEqual(await reach(await make({ tgt_type: 'task_tpl', tgt_id: 'tpl' })), []);
    assertProblem(await world.admin.send('GET', '/pillars/none/reach'), 404, 'not_found');
    assertProblem(await world.admin.send('GET', `/pillars/${root}/reach?limit=501`), 422, 'unprocessable');
  });

  test('of a collection its members and those of all below, each once, in pages of any size', async () => {
    const of = (id: string) => make({ tgt_type: 'collection', collection_id: id });
    const eu = await of('eu');
    const expected = ['m1/shop-1 via eu', 'm1/web-1 via web', 'm1/web-2 via shop', 'm1/\u{ff5e} via web'];
    for (const limit of [1, 2, 3, 500]) assert.deepEqual(await reach(eu, limit), expected);
    assert.deepEqual(await reach(await of('shop')), ['m1/web-2 via shop']);
    assert.deepEqual(await reach(await of('us')), ['m2/web-1 via us']);
  });

  test('of a task those it names and the members of its collections, while it is live', async () => {
    const named = ['\u{1f600}', 'web-2', 'db-1'].map((minion_id) => ({ master: 'm1', minion_id }));
    const task = await send('POST', '/tasks', {
      tpl_id: 'tpl',
      minions: named,
      collections: ['web', 'us'],
      pillars: [{ name: 'n', value: 1 }],
    });
    const { pillars } = await send('GET', `/tasks/${task.id}`, undefined);
    const [{ pid } = { pid: '' }] = pillars as { pid: string }[];
    const expected = [
      ...['m1/db-1', 'm1/web-1 via web', 'm1/web-2 via shop', 'm1/\u{ff5e} via web', 'm1/\u{1f600}'],
      'm2/web-1 via us',
    ];
    for (const limit of [1, 2, 4, 500]) assert.deepEqual(await reach(pid, limit), expected);
    await send('POST', `/tasks/${task.id}/state`, { state: 'cancelled' });
    assert.deepEqual(await reach(pid), []);
  });

  test('roles for a part of the estate see the minions in it, of pillars in it', async () => {
    const pid = await make({ tgt_type: 'collection', collection_id: 'web', name: 'scoped' });
    const inWeb = { role: 'viewer', collections: ['web'] };
    assert.deepEqual(
      await reach(pid, 9, await world.scoped([inWeb])),
      [],
      'minions are in no collection scope',
    );
    const withMinions = await world.scoped([inWeb, { role: 'viewer', tgt_types: ['minion'] }]);
    assert.equal((await reach(pid, 9, withMinions)).length, 3);
    const elsewhere = await world.scoped([{ role: 'viewer', collections: ['us'] }]);
    assertProblem(await elsewhere.send('GET', `/pillars/${pid}/reach`), 403, 'forbidden');
  });
});
