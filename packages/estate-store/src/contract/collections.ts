import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '@colonnade/contracts';
import type { EstateStore, Mutation } from '../port.ts';
import * as h from './harness.ts';

const ids = async (store: EstateStore, id: string) => (await store.getBranch(id)).map((row) => row.id);

export function testCollections(create: h.CreateHarness): void {
  test('the rule of a collection is set, stays when it is renamed, and is taken away', async () => {
    await h.withStore(create, async (store) => {
      const made = await h.writeTick(store, h.putCollection('web'));
      const set = (rule: string | undefined, expect?: number): Mutation => ({
        ...{ kind: 'collection.rule', id: 'web', expect, rule },
      });
      const ruled = await h.writeTick(store, set('{"op":"exists"}', made));
      const record = { id: 'web', name: 'web', parentId: undefined, owner: 'ada', rule: '{"op":"exists"}' };
      assert.deepEqual(await store.getCollection('web'), { ...record, tick: ruled });
      await h.assertRefused(store.write(h.batch([set(undefined, made)])), 'precondition_failed');
      await h.assertRefused(store.write(h.batch([{ ...set(undefined), id: 'no' } as Mutation])), 'not_found');
      const put = { ...h.putCollection('web', { name: 'Web' }), expect: ruled };
      const renamed = await h.writeTick(store, put);
      assert.deepEqual(await store.listCollections(), [{ ...record, name: 'Web', tick: renamed }]);
      const taken = await h.writeTick(store, set(undefined, renamed));
      const { rule: _, ...bare } = record;
      assert.deepEqual(await store.getCollection('web'), { ...bare, name: 'Web', tick: taken });
    });
  });

  test('a collection is made and changed with its rule in one piece; left out it stays', async () => {
    await h.withStore(create, async (store) => {
      const put = (expect: number | 'absent', rule?: string | null): Mutation => ({
        ...{ ...h.putCollection('web'), expect },
        ...(rule === undefined ? {} : { rule }),
      });
      const ruleNow = async () => (await store.getCollection('web'))?.rule;
      const made = await h.writeTick(store, put('absent', '{"op":"exists"}'));
      assert.equal(await ruleNow(), '{"op":"exists"}');
      const kept = await h.writeTick(store, put(made));
      assert.equal(await ruleNow(), '{"op":"exists"}');
      const other = await h.writeTick(store, put(kept, '{"op":"absent"}'));
      assert.equal(await ruleNow(), '{"op":"absent"}');
      const taken = await h.writeTick(store, put(other, null));
      assert.equal(await ruleNow(), undefined);
      await store.stageImport('i', [put(taken, '{"op":"in"}') as never]);
      await store.applyImport('i', { changes: 1, by: 'ada', atMs: 1, events: [] });
      assert.equal(await ruleNow(), '{"op":"in"}');
    });
  });

  test('a branch is read root first, the collection itself last', async () => {
    await h.withStore(create, async (store) => {
      const parts = [
        h.putCollection('a'),
        h.putCollection('b', { parentId: 'a' }),
        h.putCollection('c', { parentId: 'b' }),
      ];
      const tick = await h.writeTick(store, ...parts);
      assert.deepEqual(await store.getBranch('c'), [
        { id: 'a', name: 'a', parentId: undefined, owner: 'ada', tick },
        { id: 'b', name: 'b', parentId: 'a', owner: 'ada', tick },
        { id: 'c', name: 'c', parentId: 'b', owner: 'ada', tick },
      ]);
      assert.deepEqual(await ids(store, 'a'), ['a']);
      assert.deepEqual(await ids(store, 'nope'), []);
      assert.deepEqual(
        (await store.listCollections()).map(({ id }) => id),
        ['a', 'b', 'c'],
      );
      assert.equal((await store.getCollection('b'))?.parentId, 'a');
      assert.equal(await store.getCollection('nope'), undefined);
    });
  });

  test('a collection is renamed and moved with all below it, and deleted from the leaf up', async () => {
    await h.withStore(create, async (store) => {
      const tree = [h.putCollection('b', { parentId: 'a' }), h.putCollection('c', { parentId: 'b' })];
      const tick = await h.writeTick(store, h.putCollection('a'), h.putCollection('x'), ...tree);
      const move = { ...h.putCollection('b', { parentId: 'x', name: 'B' }), expect: tick };
      await h.writeTick(store, move);
      await h.assertRefused(store.write(h.batch([move])), 'precondition_failed');
      assert.deepEqual(await ids(store, 'c'), ['x', 'b', 'c']);
      assert.equal((await store.getCollection('b'))?.name, 'B');
      for (const id of ['c', 'b', 'x'])
        await h.writeTick(store, { kind: 'collection.delete', id, expect: undefined });
      assert.deepEqual(
        (await store.listCollections()).map(({ id }) => id),
        ['a'],
      );
    });
  });

  test('the tree has a greatest depth, for new collections and for moved branches', async () => {
    await h.withStore(create, async (store) => {
      const level = (n: number) => h.putCollection(`c${n}`, { parentId: n === 1 ? undefined : `c${n - 1}` });
      const chain = Array.from({ length: LIMITS.collectionDepth }, (_, i) => level(i + 1));
      await h.writeTick(store, ...chain);
      await h.assertRefused(
        store.write(h.batch([level(LIMITS.collectionDepth + 1)])),
        'conflict',
        'one deeper',
      );
      await h.writeTick(store, h.putCollection('x'), h.putCollection('y', { parentId: 'x' }));
      const under = (parent: number) => ({
        ...h.putCollection('x', { parentId: `c${parent}` }),
        expect: undefined,
      });
      await h.assertRefused(
        store.write(h.batch([under(LIMITS.collectionDepth - 1)])),
        'conflict',
        'moved branch',
      );
      await h.writeTick(store, under(LIMITS.collectionDepth - 2));
      assert.equal((await store.getBranch('y')).length, LIMITS.collectionDepth);
    });
  });

  test('a tree without pillars may get another owner, as a whole', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(
        store,
        h.putCollection('a'),
        h.putCollection('b', { parentId: 'a' }),
        h.putCollection('x'),
      );
      const child = { ...h.putCollection('b', { parentId: 'a', owner: 'bob' }), expect: undefined };
      await h.assertRefused(store.write(h.batch([child])), 'conflict', 'a child alone');
      const tick = await h.writeTick(store, { ...h.putCollection('a', { owner: 'bob' }), expect: undefined });
      const owners = (await store.listCollections()).map(({ id, owner }) => `${id}:${owner}`);
      assert.deepEqual(owners, ['a:bob', 'b:bob', 'x:ada']);
      assert.equal((await store.getCollection('b'))?.tick, tick);

      const pillar = { tgtType: 'collection', tgtId: 'b', pillarenv: 'collection:b;user:bob' } as const;
      await h.writeTick(store, h.createPillar('p1', pillar));
      const back = { ...h.putCollection('a', { owner: 'ada' }), expect: undefined };
      await h.assertRefused(store.write(h.batch([back])), 'conflict', 'a pillar below');
      const move = { ...h.putCollection('a', { parentId: 'x', owner: 'ada' }), expect: undefined };
      await h.assertRefused(store.write(h.batch([move])), 'conflict', 'a pillar below, moved');
      await h.writeTick(store, h.deletePillar('p1'));
      await h.writeTick(store, move);
      assert.deepEqual(
        (await store.getBranch('b')).map(({ owner }) => owner),
        ['ada', 'ada', 'ada'],
      );
    });
  });
}
