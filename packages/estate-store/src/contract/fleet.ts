import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minionTarget, rootTarget } from '@colonnade/contracts';
import type { ApiTokenRecord, MinionFilter, Mutation } from '../port.ts';
import * as h from './harness.ts';

export function testFleet(create: h.CreateHarness): void {
  test('a batch can require that a token is an admin, there and not expired', async () => {
    await h.withStore(create, async (store) => {
      const admin = { roles: ['viewer', 'admin'] } as const;
      await h.writeTick(
        store,
        h.putToken('a', admin),
        h.putToken('b', admin),
        h.putToken('old', { ...admin, expiresAtMs: h.NOW_MS }),
        h.putToken('v'),
      );
      const drop = (id: string, by: string) =>
        store.write(
          h.batch([
            { kind: 'token.requireAdmin', id: by },
            { kind: 'token.delete', id, expect: undefined },
          ]),
        );
      for (const by of ['old', 'v', 'none']) await h.assertRefused(drop('a', by), 'conflict', by);
      const outcomes = await Promise.allSettled([drop('a', 'b'), drop('b', 'a')]);
      h.assertOneWins(outcomes, 'conflict');
      assert.deepEqual((await store.listTokens()).length, 3);
    });
  });

  test('a master is put, changed and deleted', async () => {
    await h.withStore(create, async (store) => {
      const tick = await h.writeTick(store, h.putMaster('m1'));
      const record = { id: 'm1', envs: ['prod'], tokenIds: ['jti-1'], onUnknownMinion: 'register', tick };
      assert.deepEqual(await store.getMaster('m1'), record);
      const change = h.putMaster('m1', { envs: [], tokenIds: ['b', 'a'], onUnknownMinion: 'refuse' });
      const next = await h.writeTick(store, { ...change, expect: tick });
      const changed = { id: 'm1', envs: [], tokenIds: ['b', 'a'], onUnknownMinion: 'refuse', tick: next };
      assert.deepEqual(await store.listMasters(), [changed]);
      await h.writeTick(store, { kind: 'master.delete', id: 'm1', expect: next });
      assert.equal(await store.getMaster('m1'), undefined);
    });
  });

  test('a minion keeps its memberships in their order', async () => {
    await h.withStore(create, async (store) => {
      const collections = ['z', 'a', 'm'].map((id) => h.putCollection(id));
      const tick = await h.writeTick(
        store,
        ...collections,
        h.putMaster('m1'),
        h.putMinion('m1', 'web1', ['z', 'a', 'm']),
      );
      const record = { master: 'm1', id: 'web1', collections: ['z', 'a', 'm'], registeredBy: 'ada', tick };
      assert.deepEqual(await store.getMinion('m1', 'web1'), record);
      const next = await h.writeTick(store, { ...h.putMinion('m1', 'web1', ['m', 'z']), expect: tick });
      assert.deepEqual(await store.getMinion('m1', 'web1'), {
        ...record,
        collections: ['m', 'z'],
        tick: next,
      });
      assert.equal(await store.getMinion('m2', 'web1'), undefined);
      await h.writeTick(store, { kind: 'collection.delete', id: 'a', expect: undefined });
      await h.writeTick(store, { kind: 'minion.delete', master: 'm1', id: 'web1', expect: next });
      assert.equal(await store.getMinion('m1', 'web1'), undefined);
      await h.writeTick(store, { kind: 'collection.delete', id: 'z', expect: undefined });
    });
  });

  test('memberships by rule stand before those by name, and each kind stays when the other is set', async () => {
    await h.withStore(create, async (store) => {
      const made = ['a', 'b', 'c', 'z'].map((id) => h.putCollection(id));
      const first = await h.writeTick(
        store,
        ...made,
        h.putMaster('m1'),
        h.putMinion('m1', 'web1', ['z', 'a']),
      );
      const ruled = (collections: string[], expect?: number): Mutation => ({
        ...{ kind: 'minion.ruled', master: 'm1', id: 'web1', expect, collections },
      });
      const look = async () => {
        const { collections, byRule, tick } = (await store.getMinion('m1', 'web1')) ?? assert.fail();
        return [collections.join(), byRule?.join(), tick];
      };
      const tick = await h.writeTick(store, ruled(['c', 'a', 'b'], first));
      assert.deepEqual(await look(), ['c,b,z,a', 'c,b', tick]);
      const { rows } = await store.listMinions({ collections: ['b'] }, { after: undefined, limit: 5 });
      assert.deepEqual(rows, [await store.getMinion('m1', 'web1')]);
      const minions = [{ master: 'm1', id: 'web1' }];
      const snapshot = await store.snapshot({
        since: undefined,
        scopes: [],
        collections: false,
        masters: [],
        minions,
      });
      assert.deepEqual(snapshot.minions.get('m1/web1'), rows[0]);
      const named = await h.writeTick(store, { ...h.putMinion('m1', 'web1', ['b']), expect: tick });
      assert.deepEqual(await look(), ['c,b', 'c', named]);
      await h.assertRefused(
        store.write(h.batch([{ kind: 'collection.delete', id: 'c', expect: undefined }])),
        'conflict',
      );
      await h.assertRefused(store.write(h.batch([ruled(['c'], tick)])), 'precondition_failed');
      await h.assertRefused(store.write(h.batch([ruled(['nope'])])), 'not_found');
      await h.assertRefused(store.write(h.batch([ruled(['c', 'c'])])), 'bad_request');
      await h.assertRefused(store.write(h.batch([{ ...ruled([]), id: 'web2' } as Mutation])), 'not_found');
      const none = await h.writeTick(store, ruled([], named));
      assert.deepEqual(await look(), ['b', undefined, none]);
    });
  });

  test('minions are listed by master and by collection', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(
        store,
        ...[h.putCollection('c1'), h.putCollection('c2'), h.putMaster('m1'), h.putMaster('m2')],
        ...[h.putMinion('m2', 'a', ['c1', 'c2']), h.putMinion('m1', 'b', ['c2']), h.putMinion('m1', 'a')],
      );
      const keys = async (filter: MinionFilter) =>
        (await store.listMinions(filter, { after: undefined, limit: 10 })).rows.map(
          (m) => `${m.master}/${m.id}`,
        );
      assert.deepEqual(await keys({}), ['m1/a', 'm1/b', 'm2/a']);
      assert.deepEqual(await keys({ master: 'm1' }), ['m1/a', 'm1/b']);
      assert.deepEqual(await keys({ collections: ['c2'] }), ['m1/b', 'm2/a']);
      assert.deepEqual(await keys({ master: 'm2', collections: ['c1'] }), ['m2/a']);
      assert.deepEqual(await keys({ collections: ['c1', 'c2', 'c3'] }), ['m1/b', 'm2/a']);
      assert.deepEqual(await keys({ collections: [] }), []);
      const page = { after: undefined, limit: 1 };
      const { next } = await store.listMinions({ collections: ['c1', 'c2'] }, page);
      assert.equal(next, 'm1/b', 'who is in both is on one page only');
      const rest = await store.listMinions({ collections: ['c1', 'c2'] }, { ...page, after: next });
      assert.deepEqual([rest.rows.map(({ id }) => id), rest.next], [['a'], undefined]);
      assert.deepEqual(await keys({ master: 'm3' }), []);
    });
  });

  test('pillars are listed by the master of their minion, whatever it is called, and follow a move', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, ...['m1', 'm1.b', 'xm1'].map((id) => h.putMaster(id)));
      await h.writeTick(
        store,
        ...['m1', 'm1.b', 'xm1'].flatMap((id) => [h.putMinion(id, 'a'), h.putMinion(id, 'é')]),
      );
      const of = (master: string, minion: string) => minionTarget(minion, master);
      await h.writeTick(
        store,
        ...[h.createPillar('p1', of('m1', 'a')), h.createPillar('p2', { ...of('m1', 'é'), name: 'n' })],
        ...[
          h.createPillar('p3', of('m1.b', 'a')),
          h.createPillar('p4', of('xm1', 'a')),
          h.createPillar('p5'),
        ],
      );
      const pidsOf = async (master: string, more = {}, limit = 9) => {
        const filter = { tgtTypes: ['minion', 'root'] as const, master, ...more };
        return (await store.listPillars(filter, { after: undefined, limit })).rows.map(({ pid }) => pid);
      };
      assert.deepEqual(await pidsOf('m1'), ['p1', 'p2']);
      assert.deepEqual(await pidsOf('m1', {}, 1), ['p1']);
      assert.deepEqual(await pidsOf('m1', { name: 'n' }), ['p2']);
      assert.deepEqual(await pidsOf('m1', { tgtId: 'a' }), ['p1']);
      assert.deepEqual([await pidsOf('m1.b'), await pidsOf('nobody')], [['p3'], []]);
      const place = { ...of('xm1', 'é'), name: 'n' };
      const { tgtType, tgtId, pillarenv, name } = place;
      const move = { kind: 'pillar.move', pid: 'p2', expectTick: 3, value: 1n } as const;
      await h.writeTick(store, { ...move, place: { tgtType, tgtId, pillarenv, name } });
      assert.deepEqual([await pidsOf('m1'), await pidsOf('xm1')], [['p1'], ['p2', 'p4']]);
      await h.writeTick(store, { ...move, expectTick: 4, place: { ...rootTarget, name } });
      assert.deepEqual(await pidsOf('xm1'), ['p4']);
    });
  });

  test('a master gets no more minions than it may have, also when many come at once', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putMaster('m1'), h.putMaster('m2'), h.putMinion('m2', 'other'));
      const put = (id: string) => store.write(h.batch([{ ...h.putMinion('m1', id), maxOfMaster: 3 }]));
      const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(put));
      assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3);
      await h.assertRefused(put('f'), 'forbidden');
      await h.assertRefused(put('a'), 'already_exists');
      await h.writeTick(store, h.putMinion('m1', 'g'));
      await h.assertRefused(put('h'), 'forbidden');
    });
  });

  test('an API token is put, changed and deleted', async () => {
    await h.withStore(create, async (store) => {
      const tick = await h.writeTick(store, h.putToken('t1'));
      const record = { ...h.putToken('t1').record, tick };
      assert.deepEqual(await store.getToken('t1'), record);
      const roles = ['secret-reader', 'editor'] as const;
      const scopedRoles = [
        { role: 'editor', tgt_types: ['minion', 'root'], name_prefixes: ['a"', 'é'] },
        { role: 'viewer', collections: ['web'] },
      ] as const;
      const more = {
        ...{ roles, expiresAtMs: h.NOW_MS + 1, lastUsedAtMs: h.NOW_MS },
        scopedRoles: structuredClone(scopedRoles) as unknown as ApiTokenRecord['scopedRoles'],
      };
      const next = await h.writeTick(store, { ...h.putToken('t1', more), expect: tick });
      assert.deepEqual(await store.listTokens(), [{ ...record, ...more, tick: next }]);
      await h.writeTick(store, { kind: 'token.delete', id: 't1', expect: next });
      assert.deepEqual(await store.listTokens(), []);
      assert.equal(await store.getToken('t1'), undefined);
    });
  });

  test('the last use of a token is noted without a tick, and never goes back', async () => {
    await h.withStore(create, async (store) => {
      const tick = await h.writeTick(store, h.putToken('t1'));
      const noted = async () => (await store.getToken('t1'))?.lastUsedAtMs;
      assert.equal(await noted(), undefined);
      await store.noteTokenUse('t1', h.NOW_MS + 5);
      await store.noteTokenUse('t1', h.NOW_MS + 3);
      assert.equal(await noted(), h.NOW_MS + 5);
      await store.noteTokenUse('gone', h.NOW_MS);
      assert.equal((await store.listTokens()).length, 1);
      const { clock } = await h.look(store);
      assert.deepEqual([clock.tick, (await store.getToken('t1'))?.tick], [tick, tick]);
    });
  });
}
