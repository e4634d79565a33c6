import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import type { EstateStore } from '../port.ts';
import * as h from './harness.ts';

const NAME = 'relay';
const TTL_MS = 60_000;

const positions = async (store: EstateStore, limit = 100) =>
  (await store.readOutbox(limit)).map(({ tick, index }) => `${tick}.${index}`);

async function mustAcquire(store: EstateStore, holder: string, ttlMs = TTL_MS) {
  const lease = await store.acquireLease(NAME, holder, ttlMs);
  assert.ok(lease !== undefined);
  return lease;
}

export function testOutbox(create: h.CreateHarness): void {
  test('events come out in the order of the clock, then of their place in the batch', async () => {
    await h.withStore(create, async (store) => {
      await store.write(h.batch([h.createPillar('p1')], [h.event({ n: 1 }), h.event({ n: 1.5 })]));
      await h.writeTick(store, h.createPillar('p2'));
      await store.write(
        h.batch(
          [],
          Array.from({ length: 11 }, (_, n) => h.event({ n })),
        ),
      );
      assert.deepEqual(await store.readOutbox(2), [
        {
          type: 'pillar.changed',
          subject: 'base',
          data: fromPlain({ n: 1 }),
          tick: 1,
          index: 0,
          timeMs: h.NOW_MS,
        },
        {
          type: 'pillar.changed',
          subject: 'base',
          data: fromPlain({ n: 1.5 }),
          tick: 1,
          index: 1,
          timeMs: h.NOW_MS,
        },
      ]);
      const eleven = Array.from({ length: 11 }, (_, n) => `3.${n}`);
      assert.deepEqual(await positions(store), ['1.0', '1.1', ...eleven]);
    });
  });

  test('the holder of the lease drops what it has published, up to a position', async () => {
    await h.withStore(create, async (store) => {
      for (let i = 1; i <= 3; i++) {
        await store.write(h.batch([h.createPillar(`p${i}`)], [h.event({ i }), h.event({ i })]));
      }
      const lease = await mustAcquire(store, 'r1');
      await store.dropOutbox({ tick: 2, index: 0 }, lease);
      assert.deepEqual(await positions(store), ['2.1', '3.0', '3.1']);
      await store.dropOutbox({ tick: 2, index: 0 }, lease);
      assert.deepEqual(await positions(store), ['2.1', '3.0', '3.1']);
      await store.dropOutbox({ tick: 9, index: 9 }, lease);
      assert.deepEqual(await positions(store), []);
      assert.equal((await h.look(store)).clock.tick, 3, 'the relay does not move the clock');
    });
  });

  test('a lease has one holder, who may renew it; the next one gets a higher fence', async () => {
    await h.withStore(create, async (store) => {
      const first = await mustAcquire(store, 'r1');
      assert.equal(await store.acquireLease(NAME, 'r2', TTL_MS), undefined);
      const renewed = await mustAcquire(store, 'r1', 2 * TTL_MS);
      assert.equal(renewed.fence, first.fence);
      assert.ok(renewed.expiresAtMs > first.expiresAtMs);
      assert.deepEqual(
        { ...renewed, expiresAtMs: 0 },
        { name: NAME, holder: 'r1', fence: first.fence, expiresAtMs: 0 },
      );
      await store.releaseLease(NAME, 'r2');
      assert.equal(await store.acquireLease(NAME, 'r2', TTL_MS), undefined, 'only its holder releases it');
      await store.releaseLease(NAME, 'r1');
      const second = await mustAcquire(store, 'r2');
      assert.ok(second.fence > first.fence);
      assert.notEqual(await store.acquireLease('another', 'r1', TTL_MS), undefined);
      for (const ttlMs of [0, -1, 1.5, Number.NaN]) {
        await h.assertRefused(store.acquireLease(NAME, 'r2', ttlMs), 'bad_request', String(ttlMs));
      }
    });
  });

  test('nobody waits for longer than a lease lives, though the clock was set back after it was taken', async () => {
    await h.withStore(create, async (store) => {
      // As a clock that was an hour ahead would have written it.
      await mustAcquire(store, 'r1', 60 * 60 * 1000);
      assert.equal(await store.acquireLease(NAME, 'r2', 50), undefined);
      const next = await h.waitFor(() => store.acquireLease(NAME, 'r2', 50));
      assert.equal(next.holder, 'r2');
    });
  });

  test('a lease that ran out goes to another, and the old fence drops nothing', async () => {
    await h.withStore(create, async (store, harness) => {
      await using other = await harness.openStore();
      await store.write(h.batch([h.createPillar('p1')], [h.event({})]));
      const old = await mustAcquire(store, 'r1', 50);
      const next = await h.waitFor(() => other.acquireLease(NAME, 'r2', TTL_MS));
      assert.ok(next.fence > old.fence);
      await h.assertRefused(store.dropOutbox({ tick: 1, index: 0 }, old), 'conflict');
      await h.assertRefused(store.dropOutbox({ tick: 1, index: 0 }, { ...next, name: 'nope' }), 'conflict');
      await h.assertRefused(
        store.dropOutbox({ tick: 1, index: 0 }, { ...next, fence: next.fence + 1 }),
        'conflict',
      );
      assert.deepEqual(await positions(store), ['1.0']);
      await other.dropOutbox({ tick: 1, index: 0 }, next);
      assert.deepEqual(await positions(store), []);
    });
  });
}
