import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain, type Value } from '@colonnade/value';
import type { EstateStore } from '../port.ts';
import type { RewrapProgress, SealedRow } from '../port-keys.ts';
import * as h from './harness.ts';

/** A sealed value, as far as the store looks at it. */
const sealed = (kid: string, wrap: string): Value =>
  fromPlain({ $enc: { v: 1, alg: 'A256GCM', kid, ct_b64: 'AAAA', dek_wrapped_b64: wrap } });

const secret = (pid: string, value: Value) => h.createPillar(pid, { value, isSecret: true });
const reseal = (pid: string, value: Value) =>
  ({ kind: 'pillar.update', pid, value, isSecret: true, expectTick: undefined }) as const;

const useOf = async (store: EstateStore) => Object.fromEntries(await store.countKeyUse());

async function allSealed(store: EstateStore, kid: string, limit = 2): Promise<SealedRow[]> {
  const rows: SealedRow[] = [];
  for (let after: string | undefined; ; ) {
    const page = await store.listSealed(kid, { after, limit });
    rows.push(...page.rows);
    after = page.next;
    if (after === undefined) return rows;
  }
}

/** Rewraps what stands under a kid, as pillar-api does. */
async function rewrapAll(store: EstateStore, from: string, to: string): Promise<number> {
  let swapped = 0;
  for (let after: string | undefined; ; ) {
    const page = await store.listSealed(from, { after, limit: 3 });
    const swaps = page.rows.map(({ pid, value }) => ({ pid, from: value, to: rewrapped(value, to) }));
    swapped += await store.swapSealed(swaps);
    after = page.next;
    if (after === undefined) return swapped;
  }
}

function rewrapped(value: Value, kid: string): Value {
  const { $enc } = value as { $enc: { [field: string]: Value } };
  return { $enc: { ...$enc, kid, dek_wrapped_b64: `${String($enc.dek_wrapped_b64)}+` } };
}

export function testKeyUse(create: h.CreateHarness): void {
  test('use is counted over pillars, all their versions, and what is staged', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(
        store,
        secret('p1', sealed('k1', 'a')),
        secret('p2', sealed('k1', 'b')),
        h.createPillar('p3'),
      );
      await h.writeTick(store, reseal('p1', sealed('k2', 'c')));
      await h.writeTick(store, h.deletePillar('p2'));
      // p1: a version under k1; p2: its making and its deletion. p1 as it is, and that version.
      assert.deepEqual(await useOf(store), { k1: 3, k2: 2 });
      await store.stageImport('i1', [secret('p4', sealed('k1', 'd')) as never, h.putMaster('m1') as never]);
      assert.deepEqual(await useOf(store), { k1: 4, k2: 2 });
      await store.dropImport('i1');
      await h.writeTick(store, { kind: 'pillar.purgeHistory', pid: 'p1' });
      await h.writeTick(store, { kind: 'pillar.purge', pid: 'p2', expectTick: undefined });
      assert.deepEqual(await useOf(store), { k2: 2 });
      await h.writeTick(store, h.updatePillar('p1', 1n));
      assert.deepEqual(await useOf(store), { k2: 1 });
    });
  });

  test('a walk meets each sealed value of a key, in pages', async () => {
    await h.withStore(create, async (store) => {
      const pids = Array.from({ length: 7 }, (_, i) => `p${i}`);
      await h.writeTick(store, ...pids.map((pid) => secret(pid, sealed('k1', pid))));
      for (const pid of pids.slice(0, 3)) await h.writeTick(store, reseal(pid, sealed('k1', `${pid}'`)));
      await h.writeTick(store, h.deletePillar('p6'));
      const rows = await allSealed(store, 'k1');
      const wraps = rows.map(
        ({ value }) => (value as { $enc: { dek_wrapped_b64: string } }).$enc.dek_wrapped_b64,
      );
      assert.deepEqual([...new Set(wraps)].sort(), [...pids, "p0'", "p1'", "p2'"].sort());
      const place = { tgtType: 'root', tgtId: 'root', pillarenv: 'base', name: 'p0' };
      assert.deepEqual(rows[0], { pid: 'p0', ...place, value: sealed('k1', "p0'") });
      assert.deepEqual(await allSealed(store, 'k2'), []);
      await h.assertRefused(store.listSealed('k1', { after: 'nowhere', limit: 2 }), 'bad_request');
    });
  });

  test('a page of large values is short', async () => {
    await h.withStore(create, async (store) => {
      const large = 'x'.repeat(400_000);
      for (let i = 0; i < 4; i++) await h.writeTick(store, secret(`p${i}`, sealed('k1', large + i)));
      const page = await store.listSealed('k1', { after: undefined, limit: 10 });
      assert.equal(page.rows.length, 2);
      assert.equal((await allSealed(store, 'k1', 10)).length, 8);
    });
  });

  test('a rewrap changes the value, in the history too, and nothing else: no tick, no event, no change', async () => {
    await h.withStore(create, async (store, harness) => {
      await store.write(h.batch([secret('p1', sealed('k1', 'a'))], [h.event({ of: 'p1' })]));
      await h.writeTick(store, reseal('p1', sealed('k1', 'b')));
      await h.writeTick(store, secret('p2', sealed('k1', 'c')), h.createPillar('p3', { value: 'k1' }));
      await h.writeTick(store, h.deletePillar('p2'));
      await using reader = await harness.openReader();
      const since = (await h.look(reader)).clock;
      const before = await h.dump(store);
      assert.equal(await rewrapAll(store, 'k1', 'k2'), 3);
      assert.deepEqual(await useOf(store), { k2: 5 });
      assert.deepEqual((await h.look(reader, { since })).changed, []);
      const expected = JSON.parse(
        JSON.stringify(before, h.showBigint)
          .replaceAll('"kid":"k1"', '"kid":"k2"')
          .replaceAll(/"dek_wrapped_b64":"([a-c])"/gu, '"dek_wrapped_b64":"$1+"'),
      );
      assert.deepEqual(JSON.parse(JSON.stringify(await h.dump(store), h.showBigint)), expected);
      assert.deepEqual((await store.getVersion('p2'))?.value, sealed('k2', 'c+'));
    });
  });

  test('a value that has changed meanwhile is left alone', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, secret('p1', sealed('k1', 'a')));
      const [row] = await allSealed(store, 'k1');
      await h.writeTick(store, reseal('p1', sealed('k1', 'b')));
      const swap = { pid: 'p1', from: row?.value ?? null, to: sealed('k2', 'a+') };
      // The version still has it, the pillar does not.
      assert.equal(await store.swapSealed([swap]), 1);
      assert.deepEqual((await store.getPillar('p1'))?.value, sealed('k1', 'b'));
      assert.equal(await store.swapSealed([swap]), 0);
      const others = [
        { ...swap, pid: 'p9', from: sealed('k1', 'b') },
        { ...swap, from: sealed('k1', 'c') },
      ];
      assert.equal(await store.swapSealed(others), 0);
      assert.deepEqual(await useOf(store), { k1: 2, k2: 1 });
    });
  });

  test('a key is closed only when nothing uses it, and from then on nothing can', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, secret('p1', sealed('k1', 'a')), secret('p2', sealed('k2', 'b')));
      await h.assertRefused(store.closeKids(['k1']), 'conflict');
      assert.deepEqual(await store.readClosedKids(), []);
      await rewrapAll(store, 'k1', 'k2');
      await store.closeKids(['k1']);
      assert.deepEqual(await store.readClosedKids(), ['k1']);
      const before = await h.dump(store);
      const tick = (await store.getPillar('p1'))?.tick ?? 0;
      const place = { tgtType: 'root', tgtId: 'root', pillarenv: 'base', name: 'other' } as const;
      const value = sealed('k1', 'late');
      for (const mutation of [
        secret('p3', value),
        reseal('p1', value),
        { kind: 'pillar.move', pid: 'p1', expectTick: tick, place, value } as const,
        {
          kind: 'pillar.restore',
          expectTick: tick,
          record: { pid: 'p1', ...place, value, isSecret: true },
        } as const,
      ])
        await h.assertRefused(store.write(h.batch([mutation])), 'conflict', mutation.kind);
      await store.stageImport('i1', [secret('p4', value) as never]);
      const staged = { changes: 1, by: 'ada', atMs: h.NOW_MS, events: [] };
      await h.assertRefused(store.applyImport('i1', staged), 'conflict');
      await store.dropImport('i1');
      assert.deepEqual(await h.dump(store), before);
      await h.writeTick(store, secret('p3', sealed('k2', 'c')));
      await store.closeKids([]);
      await h.writeTick(store, reseal('p1', value));
      assert.deepEqual(await useOf(store), { k1: 2, k2: 5 });
    });
  });

  test('what an import has staged keeps its key open', async () => {
    await h.withStore(create, async (store) => {
      await store.stageImport('i1', [secret('p1', sealed('k1', 'a')) as never]);
      await h.assertRefused(store.closeKids(['k1']), 'conflict');
      await store.dropImport('i1');
      await store.closeKids(['k1']);
    });
  });

  test('of a write and a closing at once one is refused', async () => {
    await using harness = await create();
    await using one = await harness.openStore();
    await using two = await harness.openStore();
    for (let i = 0; i < 10; i++) {
      const kid = `k${i}`;
      const outcomes = await Promise.allSettled([
        one.write(h.batch([secret(`p${i}`, sealed(kid, 'a'))])),
        two.closeKids([...(await two.readClosedKids()), kid]),
      ]);
      const winner = h.assertOneWins(outcomes, 'conflict');
      assert.equal((await one.countKeyUse()).get(kid) ?? 0, winner === 0 ? 2 : 0);
    }
  });

  test('how far a rewrap is outlives its process', async () => {
    await using harness = await create();
    const times = { startedAtMs: h.NOW_MS, updatedAtMs: h.NOW_MS + 1, finishedAtMs: undefined };
    const progress: RewrapProgress = {
      ...{ key: 'pillars', kid: 'k2', by: 'ada', rewrapped: 3, failed: 1, left: 1, ...times },
    };
    {
      await using store = await harness.openStore();
      assert.equal(await store.readRewrap(), undefined);
      await store.writeRewrap({ ...progress, rewrapped: 1 });
      await store.writeRewrap(progress);
    }
    await using store = await harness.openStore();
    assert.deepEqual(await store.readRewrap(), progress);
    const finished = { ...progress, finishedAtMs: h.NOW_MS + 2 };
    await store.writeRewrap(finished);
    assert.deepEqual(await store.readRewrap(), finished);
  });
}
