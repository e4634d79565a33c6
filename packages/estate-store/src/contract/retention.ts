import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EstateStore } from '../port.ts';
import type { Retention } from '../port-history.ts';
import * as h from './harness.ts';

const DAY_MS = 86_400_000;
const at = (day: number) => h.NOW_MS + day * DAY_MS;

/** Writes one version a day. */
async function age(store: EstateStore, pid: string, days: number): Promise<void> {
  for (let day = 0; day < days; day++) {
    const mutation = day === 0 ? h.createPillar(pid, { value: 0n }) : h.updatePillar(pid, BigInt(day));
    await store.write(h.batch([mutation], [], { atMs: at(day) }));
  }
}

async function trimAll(store: EstateStore, retention: Partial<Retention>): Promise<number> {
  let removed = 0;
  let after: string | undefined;
  for (let batches = 0; batches < 100; batches++) {
    const done = await store.trimHistory({ keep: undefined, beforeMs: undefined, ...retention }, { after });
    assert.ok(done.removed <= 200, 'a batch is small');
    removed += done.removed;
    if (done.next === undefined) return removed;
    after = done.next;
  }
  return assert.fail('it does not end');
}

const valuesOf = async (store: EstateStore, pid: string) =>
  (await store.listVersions(pid)).map(({ op, value }) => (op === 'delete' ? op : Number(value)));

export function testRetention(create: h.CreateHarness): void {
  test('a retention by number keeps the newest versions of each pillar, and by age what was current since', async () => {
    await h.withStore(create, async (store) => {
      await age(store, 'p1', 6);
      await age(store, 'p2', 2);
      const before = await h.look(store);
      assert.equal(await trimAll(store, {}), 0);
      assert.equal(await trimAll(store, { keep: 4 }), 2);
      assert.deepEqual(await valuesOf(store, 'p1'), [2, 3, 4, 5]);
      assert.equal(await trimAll(store, { beforeMs: at(4) }), 1 + 1);
      assert.deepEqual(await valuesOf(store, 'p1'), [3, 4, 5], 'day 3 was current when day 4 began');
      assert.deepEqual(await valuesOf(store, 'p2'), [1], 'what is now stays, however old');
      assert.equal(await trimAll(store, { keep: 1, beforeMs: at(99) }), 2);
      assert.deepEqual(await valuesOf(store, 'p1'), [5]);
      assert.deepEqual([(await store.getPillar('p1'))?.value, await h.look(store)], [5n, before]);
      assert.equal(
        (await store.readScopeHistory('base', { pids: undefined, limit: 9 })).historyFloor.tick,
        0,
      );
    });
  });

  test('a deleted pillar is forgotten whole by age alone, and when is written down', async () => {
    await h.withStore(create, async (store) => {
      await age(store, 'p1', 2);
      await store.write(h.batch([h.deletePillar('p1')], [], { atMs: at(3) }));
      await age(store, 'p2', 1);
      const floor = async () =>
        (await store.readScopeHistory('base', { pids: undefined, limit: 9 })).historyFloor;
      assert.equal(await trimAll(store, { keep: 1 }), 2);
      assert.deepEqual(await valuesOf(store, 'p1'), ['delete']);
      assert.equal(await trimAll(store, { beforeMs: at(3) }), 0);
      assert.deepEqual(await floor(), { tick: 0, atMs: 0 });
      assert.equal(await trimAll(store, { beforeMs: at(3) + 1 }), 1);
      assert.deepEqual([await valuesOf(store, 'p1'), await floor()], [[], { tick: 3, atMs: at(3) }]);
      assert.deepEqual(await valuesOf(store, 'p2'), [0]);
    });
  });

  test('many versions and many pillars go in small batches, to the end', async () => {
    await h.withStore(create, async (store) => {
      const pids = Array.from({ length: 130 }, (_, i) => `p${String(i).padStart(3, '0')}`);
      await h.writeTick(store, ...pids.map((pid) => h.createPillar(pid)));
      for (let i = 0; i < 3; i++)
        await h.writeTick(store, ...pids.map((pid) => h.updatePillar(pid, BigInt(i))));
      for (let i = 0; i < 260; i++) await h.writeTick(store, h.updatePillar('p050', BigInt(i)));
      assert.equal(await trimAll(store, { keep: 2 }), 130 * 2 + 260);
      for (const pid of pids) assert.equal((await store.listVersions(pid)).length, 2, pid);
    });
  });

  test('nonsense is refused', async () => {
    await h.withStore(create, async (store) => {
      for (const bad of [{ keep: 0 }, { keep: 1.5 }, { beforeMs: Number.NaN }]) {
        const retention = { keep: undefined, beforeMs: undefined, ...bad };
        await h.assertRefused(store.trimHistory(retention, { after: undefined }), 'bad_request');
      }
    });
  });
}
