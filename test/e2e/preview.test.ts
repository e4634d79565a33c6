import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Explanation } from '@colonnade/contracts';
import { fromPlain, toPlain } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';

const SECRET = 'correct horse battery staple';
const MINION = { master: 'm1', minion_id: 'web' };

describe('a preview says what the same changes then do', () => {
  let stack: TestStack;

  const send = async (method: string, url: string, body?: unknown) => {
    const { value } = await stack.api.call(method, url, body === undefined ? undefined : fromPlain(body));
    return toPlain(value ?? null) as Record<string, unknown>;
  };
  const preview = (body: object) =>
    send('POST', '/explain/preview', { ...MINION, ...body }) as unknown as Promise<Explanation>;
  const explain = () =>
    send('GET', `/explain?${new URLSearchParams(MINION)}`) as unknown as Promise<Explanation>;
  /** Without what only saving gives: pids; and without what only a preview has. */
  const told = ({ keys }: Explanation) =>
    keys.map(({ winner, overrode, ...key }) => ({
      ...key,
      from: [winner, ...overrode].map(({ tgt_type, tgt_id, pillarenv }) => ({ tgt_type, tgt_id, pillarenv })),
    }));

  before(async () => {
    stack = await stackForTests();
    await stack.addMaster('m1');
    const write = writeEstate(stack.api);
    await write.collection('eu');
    await write.collection('web', 'eu');
    await write.minion('m1', 'web', ['eu']);
  });
  after(() => stack[Symbol.asyncDispose]());

  test('set, changed, deleted, secret and moved to another collection', async () => {
    const root = { tgt_type: 'root' };
    const web = { tgt_type: 'collection', collection_id: 'web' };
    const own = { tgt_type: 'minion', ...MINION };
    const motd = await send('POST', '/pillars', { ...root, name: 'motd', value: 'old' });
    const gone = await send('POST', '/pillars', { ...root, name: 'gone', value: 1 });
    await send('POST', '/pillars', { ...root, name: 'password', value: 'p', is_secret: true });
    await send('POST', '/pillars', { ...web, name: 'level', value: 1.5 });
    const before = told(await explain());
    const changes = [
      { op: 'set', ...root, name: 'motd', value: { text: 'new', level: 7 } },
      { op: 'delete', ...root, name: 'gone' },
      { op: 'set', ...web, name: 'password', value: SECRET, is_secret: true },
      { op: 'set', ...own, name: 'level', value: 2 },
    ];
    const seen = await preview({ changes, collections: ['web'] });
    assert.ok(!JSON.stringify(seen).includes('horse'));
    assert.deepEqual(seen.keys.find(({ name }) => name === 'motd')?.winner.pid, motd.pid);
    assert.deepEqual(told(await explain()), before, 'nothing was saved');

    const write = writeEstate(stack.api);
    const etag = String((await send('GET', `/pillars/${motd.pid}`)).etag);
    const value = fromPlain({ value: changes[0] && 'value' in changes[0] ? changes[0].value : null });
    await stack.api.call('PUT', `/pillars/${motd.pid}`, value, { 'if-match': etag });
    await stack.api.call('DELETE', `/pillars/${gone.pid}`, undefined, { 'if-match': String(gone.etag) });
    for (const { op: _, ...body } of changes.slice(2)) await send('POST', '/pillars', body);
    await write.minion('m1', 'web', ['web']);
    const done = await explain();
    assert.deepEqual(told(seen), told(done));
    assert.deepEqual(
      done.keys.map(({ name, value: shown }) => [name, shown]),
      [
        ['level', 2],
        ['motd', { text: 'new', level: 7 }],
        ['password', '*******'],
      ],
    );
  });
});
