import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiTokenRecord } from '../port.ts';
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

  test('minions are listed by master and by collection', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(
        store,
        ...[h.putCollection('c1'), h.putCollection('c2'), h.putMaster('m1'), h.putMaster('m2')],
        ...[h.putMinion('m2', 'a', ['c1', 'c2']), h.putMinion('m1', 'b', ['c2']), h.putMinion('m1', 'a')],
      );
      const keys = async (filter: { master?: string; collection?: string }) =>
        (await store.listMinions(filter, { after: undefined, limit: 10 })).rows.map(
          (m) => `${m.master}/${m.id}`,
        );
      assert.deepEqual(await keys({}), ['m1/a', 'm1/b', 'm2/a']);
      assert.deepEqual(await keys({ master: 'm1' }), ['m1/a', 'm1/b']);
      assert.deepEqual(await keys({ collection: 'c2' }), ['m1/b', 'm2/a']);
      assert.deepEqual(await keys({ master: 'm2', collection: 'c1' }), ['m2/a']);
      assert.deepEqual(await keys({ master: 'm3' }), []);
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
