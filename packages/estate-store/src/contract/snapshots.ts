import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChangeKey, Clock, EstateStore, Mutation } from '../port.ts';
import * as h from './harness.ts';

const ofMinion = { tgtType: 'minion', tgtId: 'web1', pillarenv: 'minion_id:web1;master:m1' } as const;

/** Each write with exactly the keys it changes. */
const STEPS: readonly (readonly [readonly ChangeKey[], readonly Mutation[]])[] = [
  [['scope:base'], [h.createPillar('p1')]],
  [
    ['scope:base', 'scope:prod'],
    [h.updatePillar('p1', 2n), h.createPillar('p2', { pillarenv: 'prod' })],
  ],
  [['scope:prod'], [h.deletePillar('p2')]],
  [['collections'], [h.putCollection('c1')]],
  [['collections'], [h.putCollection('c2', { parentId: 'c1' })]],
  [['collections'], [{ kind: 'collection.delete', id: 'c2', expect: undefined }]],
  [['master:m1'], [h.putMaster('m1')]],
  [['minion:m1/web1'], [h.putMinion('m1', 'web1', ['c1'])]],
  [['minion:m1/web1'], [{ ...h.putMinion('m1', 'web1'), expect: undefined }]],
  [['scope:minion_id:web1;master:m1'], [h.createPillar('p3', ofMinion)]],
  [['scope:minion_id:web1;master:m1'], [h.deletePillar('p3')]],
  [['minion:m1/web1'], [{ kind: 'minion.delete', master: 'm1', id: 'web1', expect: undefined }]],
  [['master:m1'], [{ kind: 'master.delete', id: 'm1', expect: undefined }]],
  [[], [h.putToken('t1')]],
];

const sorted = (keys: readonly ChangeKey[] | 'all') => (keys === 'all' ? keys : [...keys].sort());

async function changedSince(store: EstateStore, since: Clock | undefined) {
  return sorted((await h.look(store, { since })).changed);
}

export function testSnapshots(create: h.CreateHarness): void {
  test('what changed is told exactly, for every kind of write and from every earlier clock', async () => {
    await h.withStore(create, async (store) => {
      const clocks = [(await h.look(store)).clock];
      for (const [keys, mutations] of STEPS) {
        await h.writeTick(store, ...mutations);
        assert.deepEqual(await changedSince(store, clocks.at(-1)), sorted(keys), JSON.stringify(keys));
        clocks.push((await h.look(store)).clock);
      }
      for (const [index, since] of clocks.entries()) {
        const keys = new Set(STEPS.slice(index).flatMap(([changed]) => changed));
        assert.deepEqual(await changedSince(store, since), sorted([...keys]), `since ${since.tick}`);
      }
    });
  });

  test('all is unknown without a clock, with a foreign one, and with one of the future', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1'));
      const { clock } = await h.look(store);
      assert.deepEqual(await changedSince(store, clock), []);
      assert.equal(await changedSince(store, undefined), 'all');
      assert.equal(await changedSince(store, { ...clock, incarnation: 'other' }), 'all');
      assert.equal(await changedSince(store, { ...clock, tick: clock.tick + 1 }), 'all');
    });
  });

  test('changes are kept for a bounded number of ticks, and then all is unknown', async () => {
    const write = async (store: EstateStore) => {
      for (let i = 1; i <= 10; i++) await h.writeTick(store, h.createPillar(`p${i}`, { pillarenv: `e${i}` }));
    };
    const test = async (store: EstateStore, harness: h.EstateHarness) => {
      await write(store);
      const { clock } = await h.look(store);
      const since = (tick: number) => changedSince(store, { ...clock, tick });
      assert.deepEqual(await since(7), ['scope:e10', 'scope:e8', 'scope:e9']);
      for (const tick of [6, 1, 0]) assert.equal(await since(tick), 'all');
      await using patient = await harness.openStore({ changeTicksKept: 1000 });
      assert.equal(await changedSince(patient, { ...clock, tick: 6 }), 'all', 'forgotten stays forgotten');
    };
    await h.withStore(create, test, { changeTicksKept: 3 });
  });

  test('a snapshot gives each thing asked for, also when there is nothing', async () => {
    await h.withStore(create, async (store, harness) => {
      const pillars = [
        h.createPillar('p2', { name: 'b' }),
        h.createPillar('p1', { name: 'a', isSecret: true }),
      ];
      await h.writeTick(
        store,
        h.putCollection('c1'),
        h.putMaster('m1'),
        h.putMinion('m1', 'web1', ['c1']),
        ...pillars,
      );
      await using reader = await harness.openReader();
      const minions = [
        { master: 'm1', id: 'web1' },
        { master: 'm1', id: 'nope' },
      ];
      const query = { scopes: ['base', 'nope'], collections: true, masters: ['m1', 'nope'], minions };
      const seen = await h.look(reader, query);
      assert.deepEqual(seen.scopes.get('base'), [await store.getPillar('p1'), await store.getPillar('p2')]);
      assert.deepEqual(seen.scopes.get('nope'), []);
      assert.deepEqual(seen.collections, await store.listCollections());
      assert.deepEqual(
        [...seen.masters],
        [
          ['m1', await store.getMaster('m1')],
          ['nope', undefined],
        ],
      );
      assert.deepEqual(
        [...seen.minions],
        [
          ['m1/web1', await store.getMinion('m1', 'web1')],
          ['m1/nope', undefined],
        ],
      );
      assert.equal((await h.look(reader)).collections, undefined);
      assert.deepEqual(await reader.listMasters(), await store.listMasters());
      assert.equal((await reader.listMasters()).length, 1);
      await reader.ping();
      await store.ping();
    });
  });

  test('a reader sees each write as soon as it was acknowledged', async () => {
    await h.withStore(create, async (store, harness) => {
      await using reader = await harness.openReader();
      await h.writeTick(store, h.createPillar('p1'));
      for (let i = 0; i < 100; i++) {
        const tick = await h.writeTick(store, h.updatePillar('p1', BigInt(i)));
        const seen = await h.look(reader, { scopes: ['base'] });
        assert.equal(seen.clock.tick, tick);
        assert.equal(seen.scopes.get('base')?.[0]?.value, BigInt(i));
      }
    });
  });

  test('while writes go on, every snapshot is of one moment, its clock and all kinds of rows', async () => {
    await h.withStore(create, async (store, harness) => {
      await using reader = await harness.openReader();
      const rename = (name: string) => ({ ...h.putCollection('c1', { name }), expect: undefined });
      await h.writeTick(store, h.putCollection('c1'), h.createPillar('p1'));
      let isWriting = true;
      const writing = (async () => {
        for (let i = 0n; i < 60n; i++) await h.writeTick(store, h.updatePillar('p1', i), rename(`c${i}`));
      })().finally(() => {
        isWriting = false;
      });
      while (isWriting) {
        const { clock, scopes, collections } = await h.look(reader, { scopes: ['base'], collections: true });
        const ticks = [scopes.get('base')?.[0]?.tick, collections?.[0]?.tick];
        assert.deepEqual(ticks, [clock.tick, clock.tick]);
        // A reader that answers at once would never let the writes go on.
        await nextTurn();
      }
      await writing;
    });
  });

  test('a restore gets a new incarnation, and no tick is given out a second time', async () => {
    await using harness = await create();
    const before = await (async () => {
      await using store = await harness.openStore();
      await h.writeTick(store, h.createPillar('p1'));
      return (await h.look(store)).clock;
    })();
    await using restored = await harness.openStore({ newIncarnation: true });
    const { clock, changed } = await h.look(restored, { since: before });
    assert.notEqual(clock.incarnation, before.incarnation);
    assert.ok(clock.tick > before.tick + 1_000_000, 'far beyond what may have been written after the backup');
    assert.equal(changed, 'all');
    assert.equal(await h.writeTick(restored, h.createPillar('p2')), clock.tick + 1);
    assert.deepEqual(await changedSince(restored, clock), ['scope:base']);
    assert.deepEqual((await restored.getPillar('p1'))?.tick, before.tick);
  });
}
