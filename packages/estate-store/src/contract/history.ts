import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minionTarget, type ResolvedTarget, rootTarget } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { EstateStore, Mutation } from '../port.ts';
import type { PillarVersion } from '../port-history.ts';
import * as h from './harness.ts';

const move = (
  pid: string,
  expectTick: number,
  name: string,
  value: Value,
  target: ResolvedTarget = rootTarget,
) => ({ kind: 'pillar.move', pid, expectTick, place: { ...target, name }, value }) as const;
const restore = (pid: string, expectTick: number, more: object = {}): Mutation => {
  const record = { pid, ...rootTarget, name: pid, value: 'old', isSecret: false, ...more };
  return { kind: 'pillar.restore', expectTick, record };
};
const purge = (pid: string, expectTick?: number) => ({ kind: 'pillar.purge', pid, expectTick }) as const;
const unchanged = (since: number, pillarenv = 'base') =>
  ({ kind: 'scope.requireUnchanged', pillarenv, since }) as const;

const shownOf = (versions: readonly PillarVersion[]) =>
  versions.map(({ tick, op, name, pillarenv, value }) => [tick, op, name, pillarenv, value]);
const keysAfter = async (store: EstateStore, tick: number) => {
  const { incarnation } = (await h.look(store)).clock;
  const { changed } = await h.look(store, { since: { incarnation, tick } });
  return changed === 'all' ? 'all' : [...changed].sort();
};
/** Master m1 with minions a and b, m2 with none, in tick 1. */
const fleet = [h.putMaster('m1'), h.putMaster('m2'), h.putMinion('m1', 'a'), h.putMinion('m1', 'b')];

export function testHistory(create: h.CreateHarness): void {
  test('a pillar is moved under its pid, and both scopes are told of it', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, ...fleet);
      await h.writeTick(store, h.createPillar('p1', { value: 1n }));
      const target = minionTarget('a', 'm1');
      assert.equal(await h.writeTick(store, move('p1', 2, 'q', 2n, target)), 3);
      const now = await store.getPillar('p1');
      assert.deepEqual(
        [now?.tgtType, now?.tgtId, now?.pillarenv, now?.name, now?.value, now?.tick, now?.createdBy],
        ['minion', 'a', target.pillarenv, 'q', 2n, 3, 'ada'],
      );
      assert.deepEqual(await keysAfter(store, 2), ['scope:base', `scope:${target.pillarenv}`]);
      assert.equal(await store.findPillar('root', 'root', 'p1', 'base'), undefined);
      assert.equal((await store.findPillar('minion', 'a', 'q', target.pillarenv))?.pid, 'p1');
      assert.deepEqual(shownOf(await store.listVersions('p1')), [
        [2, 'create', 'p1', 'base', 1n],
        [3, 'move', 'q', target.pillarenv, 2n],
      ]);
      await h.writeTick(store, move('p1', 3, 'q', 2n));
      assert.equal((await store.findPillar('root', 'root', 'q', 'base'))?.tick, 4);
      await h.writeTick(store, h.createPillar('p2', { name: 'p1' }));
    });
  });

  test('a move that cannot be is refused whole: from another state, to a taken place, to nobody', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, ...fleet);
      await h.writeTick(store, h.createPillar('p1'), h.createPillar('p2'));
      const before = await h.dump(store);
      const refused = (code: Parameters<typeof h.assertRefused>[1], ...mutations: Mutation[]) =>
        h.assertRefused(store.write(h.batch(mutations)), code);
      await refused('precondition_failed', move('p1', 1, 'x', 1n));
      await refused('already_exists', move('p1', 2, 'p2', 1n));
      await refused('not_found', move('never', 2, 'x', 1n));
      await refused('unknown_minion', move('p1', 2, 'x', 1n, minionTarget('a', 'm2')));
      await refused(
        'unknown_minion',
        move('p2', 2, 'x', 1n),
        move('p1', 2, 'x', 1n, minionTarget('c', 'm1')),
      );
      await refused('bad_request', move('p1', 2, 'x', 1n), h.deletePillar('p1'));
      assert.deepEqual(await h.dump(store), before);
    });
  });

  test('a minion goes to another master with its pillars in one write, and cannot leave one behind', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, ...fleet);
      const [from, to] = [minionTarget('a', 'm1'), minionTarget('a', 'm2')];
      await h.writeTick(store, h.createPillar('p1', from), h.createPillar('p2', from));
      const gone = { kind: 'minion.delete', master: 'm1', id: 'a', expect: 1 } as const;
      const half = [h.putMinion('m2', 'a'), move('p1', 2, 'p1', 1n, to), gone];
      await h.assertRefused(store.write(h.batch(half)), 'conflict');
      await h.writeTick(store, ...half.slice(0, 2), move('p2', 2, 'p2', 2n, to), gone);
      assert.equal(await store.getMinion('m1', 'a'), undefined);
      assert.equal((await store.getMinion('m2', 'a'))?.tick, 3);
      const scopes = [from.pillarenv, to.pillarenv];
      const snapshot = await h.look(store, { scopes });
      assert.deepEqual(
        scopes.map((scope) => snapshot.scopes.get(scope)?.map(({ pid }) => pid)),
        [[], ['p1', 'p2']],
      );
      assert.deepEqual(
        await keysAfter(store, 2),
        ['minion:m1/a', 'minion:m2/a', ...scopes.map((scope) => `scope:${scope}`)].sort(),
      );
    });
  });

  test('an earlier state comes back as a new version, also of a pillar that was deleted, under its own pid', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1', { value: 'old' }));
      await h.writeTick(store, h.updatePillar('p1', 'new'));
      await store.write(h.batch([restore('p1', 2)], [], { by: 'bob', atMs: h.NOW_MS + 5 }));
      await h.writeTick(store, h.deletePillar('p1'));
      await h.assertRefused(store.write(h.batch([restore('p1', 3)])), 'precondition_failed');
      await h.assertRefused(store.write(h.batch([restore('never', 3)])), 'not_found');
      await store.write(h.batch([restore('p1', 4, { name: 'q' })], [], { by: 'eve', atMs: h.NOW_MS + 9 }));
      assert.deepEqual(shownOf(await store.listVersions('p1')), [
        [1, 'create', 'p1', 'base', 'old'],
        [2, 'update', 'p1', 'base', 'new'],
        [3, 'restore', 'p1', 'base', 'old'],
        [4, 'delete', 'p1', 'base', 'old'],
        [5, 'restore', 'q', 'base', 'old'],
      ]);
      const now = await store.getPillar('p1');
      assert.deepEqual(
        [now?.createdBy, now?.updatedBy, now?.createdAtMs, now?.updatedAtMs, now?.tick],
        ['ada', 'eve', h.NOW_MS, h.NOW_MS + 9, 5],
      );
      assert.deepEqual(await store.getVersion('p1'), { ...now, op: 'restore', purged: false });
      assert.deepEqual((await store.getVersion('p1', 2))?.value, 'new');
      assert.equal(await store.getVersion('p1', 6), undefined);
      assert.equal(await store.getVersion('never'), undefined);
      await h.writeTick(store, h.deletePillar('p1'), h.createPillar('p2', { name: 'q' }));
      await h.assertRefused(store.write(h.batch([restore('p1', 6, { name: 'q' })])), 'already_exists');
      assert.deepEqual(await keysAfter(store, 4), ['scope:base']);
    });
  });

  test('what is purged is gone with its history, and nothing else is', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('p1', { value: 'exposed' }), h.createPillar('p2'));
      await h.writeTick(store, h.updatePillar('p1', 'exposed-2'));
      await h.writeTick(store, h.deletePillar('p2'));
      await h.assertRefused(store.write(h.batch([purge('p1', 1)])), 'precondition_failed');
      await h.writeTick(store, purge('p1', 2));
      assert.deepEqual(await keysAfter(store, 3), ['scope:base']);
      assert.equal(await store.getPillar('p1'), undefined);
      assert.deepEqual(await store.listVersions('p1'), []);
      assert.equal((await store.listVersions('p2')).length, 2);
      await h.assertRefused(store.write(h.batch([purge('p1')])), 'not_found');
      await h.assertRefused(store.write(h.batch([restore('p1', 2)])), 'not_found');
      await h.writeTick(store, purge('p2'), h.createPillar('p3', { name: 'p1' }));
      assert.deepEqual(await store.listVersions('p2'), []);
    });
  });

  test('a batch that needs a scope as it was is refused when it is not, or when nobody knows', async () => {
    const options = { changeTicksKept: 4 };
    await h.withStore(
      create,
      async (store) => {
        await h.writeTick(store, ...fleet);
        await h.writeTick(store, h.createPillar('p1'));
        await h.writeTick(store, h.createPillar('p2', minionTarget('a', 'm1')));
        const ask = (since: number) =>
          store.write(h.batch([unchanged(since), h.updatePillar('p1', BigInt(since))]));
        await h.assertRefused(ask(1), 'precondition_failed');
        await h.assertRefused(ask(99), 'precondition_failed');
        assert.equal((await ask(2)).clock.tick, 4);
        await h.assertRefused(ask(3), 'precondition_failed');
        const together = await Promise.allSettled([ask(4), ask(4), ask(4)]);
        h.assertOneWins(together, 'precondition_failed');
        for (let i = 0; i < 6; i++) await h.writeTick(store, h.updatePillar('p2', BigInt(i)));
        await h.assertRefused(ask(5), 'precondition_failed', 'too long ago');
      },
      options,
    );
  });

  test('the history of a scope has every version of whatever stood in it, without values', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, ...fleet);
      await h.writeTick(
        store,
        h.createPillar('p1'),
        h.createPillar('p2'),
        h.createPillar('p3', minionTarget('b', 'm1')),
      );
      await h.writeTick(store, move('p1', 2, 'p1', 1n, minionTarget('a', 'm1')));
      await h.writeTick(store, h.deletePillar('p2'));
      const ask = async (scope: string, pids?: string[], limit = 100) => {
        const found = await store.readScopeHistory(scope, { pids, limit });
        return found.marks?.map(({ pid, tick, op }) => [pid, tick, op]);
      };
      const p1 = [
        ['p1', 2, 'create'],
        ['p1', 3, 'move'],
      ];
      const p2 = [
        ['p2', 2, 'create'],
        ['p2', 4, 'delete'],
      ];
      assert.deepEqual(await ask('base'), [...p1, ...p2]);
      assert.deepEqual(await ask('base', ['p2', 'p3']), p2);
      assert.deepEqual(await ask(minionTarget('a', 'm1').pillarenv), p1);
      assert.deepEqual(await ask('nowhere'), []);
      assert.equal(await ask('base', undefined, 3), undefined);
      const { clock, historyFloor, marks } = await store.readScopeHistory('base', { pids: ['p2'], limit: 9 });
      assert.deepEqual([clock, historyFloor.tick], [(await h.look(store)).clock, 0]);
      assert.deepEqual(marks?.[1], {
        ...{ pid: 'p2', tick: 4, op: 'delete', purged: false, pillarenv: 'base', name: 'p2' },
        ...{ tgtType: 'root', tgtId: 'root', isSecret: false, updatedAtMs: h.NOW_MS },
      });
    });
  });

  test('the history of a scope of any size is read in pages, three versions of each pillar', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, ...fleet);
      await h.writeTick(store, h.createPillar('p1'), h.createPillar('p2'), h.createPillar('p3'));
      for (let i = 0; i < 40; i++)
        await store.write(h.batch([h.updatePillar('p1', BigInt(i))], [], { atMs: h.NOW_MS + i + 1 }));
      await store.write(h.batch([h.deletePillar('p2')], [], { atMs: h.NOW_MS + 50 }));
      const ask = async (after: string | undefined, limit = 2, pids?: string[], at = 20) => {
        const page = await store.readScopePage('base', { pids, at, after, limit });
        return [page.marks.map(({ pid, tick, op }) => `${pid}@${tick} ${op}`), page.next];
      };
      const p1 = ['p1@2 create', 'p1@20 update', 'p1@42 update'];
      const p2 = ['p2@2 create', 'p2@43 delete'];
      assert.deepEqual(await ask(undefined), [[...p1, ...p2], 'p2']);
      assert.deepEqual(await ask('p2'), [['p3@2 create'], undefined]);
      assert.deepEqual(await ask(undefined, 1), [p1, 'p1']);
      assert.deepEqual(await ask('p1', 9, ['p1', 'p2']), [p2, undefined]);
      assert.deepEqual(await ask(undefined, 9, ['p1'], 1), [['p1@2 create', 'p1@42 update'], undefined]);
      const page = await store.readScopePage('base', { pids: undefined, at: 20, after: undefined, limit: 9 });
      assert.deepEqual([page.clock, page.historyFloor.tick], [(await h.look(store)).clock, 0]);
      const later = async (ms: number, pids?: string[]) =>
        (await store.findScopeChange('base', { pids, afterMs: h.NOW_MS + ms })).tick;
      assert.deepEqual(
        [await later(-1), await later(0), await later(7), await later(7, ['p2', 'p3']), await later(50)],
        [2, 3, 10, 43, undefined],
      );
      assert.equal((await store.findScopeChange('nowhere', { pids: undefined, afterMs: 0 })).tick, undefined);
    });
  });
}
