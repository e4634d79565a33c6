import assert from 'node:assert/strict';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { Touched } from '@colonnade/contracts';
import { tempDir } from '../../../../test/support/temp.ts';
import { openRunStore } from './run-store.ts';

const minion = (id: string): Touched => ({ kind: 'minion', master: 'east', id });

async function startStore() {
  const owned = new AsyncDisposableStack();
  const dir = owned.use(await tempDir('touches')).path;
  const file = path.join(dir, 'hooks.sqlite');
  const store = owned.use(openRunStore(file)).generations;
  const count = () => {
    using db = new DatabaseSync(file, { readOnly: true });
    return db.prepare('SELECT count(*) AS n FROM touches').get()?.n;
  };
  return { store, count, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

test('what is touched again and again, while no generation comes to its end, is noted once of each kind', async () => {
  await using world = await startStore();
  for (let i = 0; i < 5; i += 1) {
    world.store.touch([minion('a'), minion('b'), { kind: 'all' }]);
    world.store.touch([{ kind: 'all' }], { rewrite: true });
    world.store.touch([minion('a')], { gone: true });
  }
  assert.equal(world.count(), 5);
  const pending = world.store.pending();
  assert.deepEqual(
    { rewrite: pending?.rewrite, gone: pending?.gone, touched: pending?.touched.length },
    { rewrite: true, gone: [{ master: 'east', id: 'a' }], touched: 3 },
  );
});

test('what is touched again while a generation works on it is not done with that one', async () => {
  await using world = await startStore();
  world.store.touch([minion('a'), minion('b')]);
  const pending = world.store.pending();
  world.store.touch([minion('a')]);
  const record = { id: '2026-01-31T12:00:00.000Z', endedAt: '2026-01-31T12:00:01.000Z', reason: undefined };
  world.store.end({ ...record, status: 'finished', updated: [], failed: [] }, pending, [], []);
  assert.deepEqual(world.store.pending()?.touched, [minion('a')]);
});

test('a minion that waits to be tried again is noted beside its change, and goes when it was looked at', async () => {
  await using world = await startStore();
  const record = { id: '2026-01-31T12:00:00.000Z', endedAt: '2026-01-31T12:00:01.000Z', reason: undefined };
  const again = { minion: { master: 'east', id: 'a' }, inMs: 60_000, tries: 1, gone: false };
  world.store.end({ ...record, status: 'failed', updated: [], failed: [] }, undefined, [], [again]);
  world.store.touch([minion('a')]);
  assert.equal(world.count(), 2);
  const pending = world.store.pending();
  world.store.end({ ...record, status: 'finished', updated: [], failed: [] }, pending, [again.minion], []);
  assert.equal(world.count(), 0);
});
