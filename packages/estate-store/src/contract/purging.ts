import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import type { EstateStore } from '../port.ts';
import type { PillarVersion } from '../port-history.ts';
import * as h from './harness.ts';

const SEALED = fromPlain({ $enc: 'sealed' });
const EXPOSED = 'a-password-in-the-clear';

const toSecret = (pid: string, expectTick?: number) =>
  ({ kind: 'pillar.update', pid, expectTick, value: SEALED, isSecret: true }) as const;
const purge = (pid: string) => ({ kind: 'pillar.purgeHistory', pid }) as const;

/** What a history shows of the values: `-` where one was purged. */
async function valuesOf(store: EstateStore, pid: string): Promise<unknown[]> {
  const versions = await store.listVersions(pid);
  for (const { purged, value } of versions) if (purged) assert.equal(value, null);
  return versions.map(({ purged, value }: PillarVersion) => (purged ? '-' : value));
}

export function testPurging(create: h.CreateHarness): void {
  test('a plain pillar that becomes a secret loses the plain values of its history, and nothing else', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1', { value: EXPOSED }), h.createPillar('p2'));
      await h.writeTick(store, h.updatePillar('p1', `${EXPOSED}-2`));
      const before = await store.listVersions('p1');
      const tick = await h.writeTick(store, toSecret('p1', 2));
      assert.deepEqual(await valuesOf(store, 'p1'), ['-', '-', SEALED]);
      const after = await store.listVersions('p1');
      assert.deepEqual(
        after.slice(0, 2),
        before.map((version) => ({ ...version, value: null, purged: true })),
      );
      assert.deepEqual(
        [(await store.getPillar('p1'))?.isSecret, (await store.getPillar('p1'))?.tick],
        [true, tick],
      );
      assert.deepEqual(await valuesOf(store, 'p2'), [fromPlain({ of: 'p2' })]);
      assert.ok(!JSON.stringify(await h.dump(store), h.showBigint).includes(EXPOSED));
    });
  });

  test('what was sealed stays sealed in the history, whatever follows', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1', { value: SEALED, isSecret: true }));
      await h.writeTick(store, h.updatePillar('p1', 1n));
      await h.writeTick(store, toSecret('p1'));
      await h.writeTick(store, toSecret('p1'));
      assert.deepEqual(await valuesOf(store, 'p1'), [SEALED, '-', SEALED, SEALED]);
    });
  });

  test('a refused change purges nothing', async () => {
    await h.withStore(create, async (store) => {
      const tick = await h.writeTick(store, h.createPillar('p1', { value: 1n }));
      await h.assertRefused(store.write(h.batch([toSecret('p1', tick + 5)])), 'precondition_failed');
      const twice = h.batch([toSecret('p1'), h.deletePillar('p2')]);
      await h.assertRefused(store.write(twice), 'not_found');
      assert.deepEqual(await valuesOf(store, 'p1'), [1n]);
    });
  });

  test('a purge empties the history, also of a pillar that is gone; one that exists keeps what it is', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1', { value: EXPOSED }), h.createPillar('p2', { value: 1n }));
      await h.writeTick(store, h.updatePillar('p2', 2n));
      await h.writeTick(store, h.deletePillar('p1'));
      const { tick } = await h.look(store).then(({ clock }) => clock);
      assert.equal(await h.writeTick(store, purge('p1'), purge('p2')), tick + 1);
      assert.deepEqual(await valuesOf(store, 'p1'), ['-', '-']);
      assert.deepEqual(await valuesOf(store, 'p2'), ['-', 2n]);
      assert.deepEqual([(await store.getPillar('p2'))?.value, (await store.getPillar('p2'))?.tick], [2n, 2]);
      assert.deepEqual(
        (await store.listVersions('p1')).map(({ op }) => op),
        ['create', 'delete'],
      );
      await h.writeTick(store, purge('p1'));
      await h.assertRefused(store.write(h.batch([purge('never')])), 'not_found');
    });
  });
}
