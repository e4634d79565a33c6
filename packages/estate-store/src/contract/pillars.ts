import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import * as h from './harness.ts';

export function testPillars(create: h.CreateHarness): void {
  test('a pillar is created, updated and deleted, and each step is a version', async () => {
    await h.withStore(create, async (store) => {
      const first = await store.write(h.batch([h.createPillar('p1', { isSecret: true })]));
      const { incarnation, tick } = first.clock;
      assert.equal(tick, 1);
      const expected = {
        ...{ pid: 'p1', tgtType: 'root', tgtId: 'root', pillarenv: 'base', name: 'p1', isSecret: true },
        ...{ value: fromPlain({ of: 'p1' }), createdBy: 'ada', updatedBy: 'ada', tick },
        ...{ createdAtMs: h.NOW_MS, updatedAtMs: h.NOW_MS },
      };
      assert.deepEqual(await store.getPillar('p1'), expected);
      assert.deepEqual(await store.findPillar('root', 'root', 'p1', 'base'), expected);

      const update = h.batch([h.updatePillar('p1', 2n, tick)], [], { by: 'bob', atMs: h.NOW_MS + 5 });
      assert.deepEqual((await store.write(update)).clock, { incarnation, tick: 2 });
      const updated = {
        ...expected,
        value: 2n,
        isSecret: false,
        updatedBy: 'bob',
        updatedAtMs: h.NOW_MS + 5,
        tick: 2,
      };
      assert.deepEqual(await store.getPillar('p1'), updated);

      await store.write(h.batch([h.deletePillar('p1', 2)], [], { by: 'eve', atMs: h.NOW_MS + 9 }));
      assert.equal(await store.getPillar('p1'), undefined);
      assert.equal(await store.findPillar('root', 'root', 'p1', 'base'), undefined);
      assert.deepEqual(await store.listVersions('p1'), [
        { ...expected, op: 'create', purged: false },
        { ...updated, op: 'update', purged: false },
        { ...updated, updatedBy: 'eve', updatedAtMs: h.NOW_MS + 9, tick: 3, op: 'delete', purged: false },
      ]);
      const opsAfter = async (after: number, limit: number) =>
        (await store.listVersions('p1', { after, limit })).map((version) => version.op);
      assert.deepEqual(await opsAfter(0, 2), ['create', 'update']);
      assert.deepEqual(await opsAfter(2, 2), ['delete']);
      assert.deepEqual(await opsAfter(3, 2), []);
    });
  });

  test('a pid is never used again, also when its pillar is gone', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1'));
      await h.assertRefused(store.write(h.batch([h.createPillar('p1', { name: 'other' })])), 'conflict');
      await h.writeTick(store, h.deletePillar('p1'));
      await h.assertRefused(store.write(h.batch([h.createPillar('p1')])), 'conflict');
      await h.writeTick(store, h.createPillar('p2', { name: 'p1' }));
      assert.equal((await store.listVersions('p1')).length, 2);
    });
  });

  test('the key of a pillar is its target, name and pillarenv together', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1', { name: 'n' }));
      await h.assertRefused(store.write(h.batch([h.createPillar('p2', { name: 'n' })])), 'already_exists');
      await h.writeTick(store, h.createPillar('p3', { name: 'n', pillarenv: 'prod' }));
      await h.writeTick(store, h.createPillar('p4', { name: 'N' }));
      await h.writeTick(store, h.createPillar('p5', { name: 'n', tgtId: 'other' }));
    });
  });

  test('one batch moves a name from a pillar to another: its mutations follow each other', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1', { name: 'n' }));
      const tick = await h.writeTick(store, h.deletePillar('p1'), h.createPillar('p2', { name: 'n' }));
      assert.equal(tick, 2);
      assert.equal((await store.findPillar('root', 'root', 'n', 'base'))?.pid, 'p2');
    });
  });

  test('a pillar of a collection or a minion needs its target', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putCollection('c1'), h.putMaster('m1'), h.putMinion('m1', 'web1'));
      const ofCollection = {
        tgtType: 'collection',
        tgtId: 'c1',
        pillarenv: 'collection:c1;user:ada',
      } as const;
      const ofMinion = { tgtType: 'minion', tgtId: 'web1', pillarenv: 'minion_id:web1;master:m1' } as const;
      await h.writeTick(store, h.createPillar('p1', ofCollection), h.createPillar('p2', ofMinion));
      const refusals = [
        ['not_found', { ...ofCollection, tgtId: 'c2' }],
        ['conflict', { ...ofCollection, pillarenv: 'collection:c1;user:bob' }],
        ['unknown_minion', { ...ofMinion, tgtId: 'web2', pillarenv: 'minion_id:web2;master:m1' }],
        ['bad_request', { ...ofMinion, pillarenv: 'minion_id:web2;master:m1' }],
        ['bad_request', { ...ofMinion, pillarenv: 'base' }],
      ] as const;
      for (const [code, more] of refusals) {
        await h.assertRefused(store.write(h.batch([h.createPillar('p3', more)])), code, JSON.stringify(more));
      }
    });
  });

  test('the list filters by target types, target, pillarenv and name', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putMaster('m1'), h.putMinion('m1', 'web1'), h.putTemplate('t1'));
      await h.writeTick(
        store,
        ...[h.createTask('t1'), h.createTask('t2')],
        h.createPillar('p1', { name: 'a' }),
        h.createPillar('p2', { name: 'a', pillarenv: 'prod' }),
        h.createPillar('p3', { name: 'a', tgtType: 'task', tgtId: 't1', pillarenv: 'task:t1' }),
        h.createPillar('p4', { name: 'b', tgtType: 'task', tgtId: 't2', pillarenv: 'task:t2' }),
      );
      const pids = async (filter: Parameters<typeof store.listPillars>[0]) =>
        (await store.listPillars(filter, { after: undefined, limit: 10 })).rows.map(({ pid }) => pid);
      assert.deepEqual(await pids({ tgtTypes: [] }), []);
      assert.deepEqual(await pids({ tgtTypes: ['root'] }), ['p1', 'p2']);
      assert.deepEqual(await pids({ tgtTypes: ['root', 'task'], name: 'a' }), ['p1', 'p2', 'p3']);
      assert.deepEqual(await pids({ tgtTypes: ['task'], tgtId: 't2' }), ['p4']);
      assert.deepEqual(await pids({ tgtTypes: ['root', 'task'], pillarenv: 'prod', name: 'a' }), ['p2']);
    });
  });
}
