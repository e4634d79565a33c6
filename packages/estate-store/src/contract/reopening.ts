import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as h from './harness.ts';

export function testReopening(create: h.CreateHarness): void {
  test('an estate is the same after it was closed and opened', async () => {
    await using harness = await create();
    const before = await (async () => {
      await using store = await harness.openStore();
      const fleet = [
        h.putCollection('c1'),
        h.putMaster('m1'),
        h.putMinion('m1', 'web1', ['c1']),
        h.putToken('t1'),
      ];
      await store.write(h.batch([...fleet, h.createPillar('p1')], [h.event({ n: 1 })]));
      return await h.dump(store);
    })();
    await using store = await harness.openStore();
    assert.deepEqual(await h.dump(store), before);
  });

  test('a reader may be opened before the estate is there, and works once it is', async () => {
    await using harness = await create();
    await using reader = await harness.openReader();
    await h.assertRefused(h.look(reader), 'unavailable');
    await h.assertRefused(reader.listMasters(), 'unavailable');
    await h.assertRefused(reader.ping(), 'unavailable');
    await using store = await harness.openStore();
    const tick = await h.writeTick(store, h.createPillar('p1'));
    assert.equal((await h.look(reader)).clock.tick, tick);
  });

  test('a reader works without a writer', async () => {
    await using harness = await create();
    await using early = await harness.openReader();
    const tick = await (async () => {
      await using store = await harness.openStore();
      const tick = await h.writeTick(store, h.createPillar('p1'));
      assert.equal((await h.look(early)).clock.tick, tick);
      return tick;
    })();
    await using late = await harness.openReader();
    for (const reader of [early, late]) assert.equal((await h.look(reader)).clock.tick, tick);
  });

  test('writes that were under way when the store is closed are finished; later calls are unavailable', async () => {
    await using harness = await create();
    const store = await harness.openStore();
    const writes = Array.from({ length: 50 }, (_, i) => store.write(h.batch([h.createPillar(`p${i}`)])));
    await store[Symbol.asyncDispose]();
    assert.equal((await Promise.all(writes)).length, 50);
    await h.assertRefused(store.write(h.batch([h.createPillar('late')])), 'unavailable');
    await h.assertRefused(store.getPillar('p1'), 'unavailable');
    await h.assertRefused(store.ping(), 'unavailable');
    await store[Symbol.asyncDispose]();
    await using reader = await harness.openReader();
    assert.equal((await h.look(reader)).clock.tick, 50);
  });
}
