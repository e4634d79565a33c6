import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseValue } from '@colonnade/value';
import type { EstateStore, Mutation } from '../port.ts';
import * as h from './harness.ts';

const FACTS = parseValue('{"$os":"Debian","cpus":2,"load":1.0,"ips":["192.0.2.1"]}');
const EVERYTHING = { after: undefined, limit: 500 };

type Put = Extract<Mutation, { kind: 'inventory.put' }>;
const put = (id: string, expect: Put['expect'] = 'absent', master = 'm1', facts = FACTS): Put => ({
  ...{ kind: 'inventory.put', expect, record: { master, id, facts } },
});
const drop = (id: string, expect?: number): Mutation => ({
  ...{ kind: 'inventory.delete', master: 'm1', id, expect },
});

async function ids(store: EstateStore, filter: Parameters<EstateStore['listInventories']>[0]) {
  const { rows } = await store.listInventories(filter, EVERYTHING);
  return rows.map(({ master, id }) => `${master}/${id}`);
}

export function testInventories(create: h.CreateHarness): void {
  test('an inventory is received, received anew and dropped; its facts come back exactly', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putMaster('m1'));
      const tick = await h.writeTick(store, put('web1'));
      const first = {
        ...{ master: 'm1', id: 'web1', facts: FACTS, receivedBy: 'ada', receivedAtMs: h.NOW_MS },
        ...{ accepted: false, tick },
      };
      assert.deepEqual(await store.getInventory('m1', 'web1'), first);
      const again = put('web1', tick, 'm1', null);
      await store.write(h.batch([again], [], { by: 'bob', atMs: h.NOW_MS + 5 }));
      const second = { facts: null, receivedBy: 'bob', receivedAtMs: h.NOW_MS + 5, tick: tick + 1 };
      assert.deepEqual(await store.getInventory('m1', 'web1'), { ...first, ...second });
      await h.assertRefused(store.write(h.batch([again])), 'precondition_failed');
      await h.assertRefused(store.write(h.batch([put('web1')])), 'already_exists');
      await h.assertRefused(store.write(h.batch([{ ...put('web2'), expect: undefined }])), 'not_found');
      await h.assertRefused(store.write(h.batch([put('web1', 'absent', 'm9')])), 'unknown_master');
      await h.assertRefused(store.write(h.batch([drop('web1', tick)])), 'precondition_failed');
      await h.assertRefused(store.write(h.batch([drop('web2')])), 'not_found');
      await h.assertRefused(
        store.write(h.batch([{ kind: 'master.delete', id: 'm1', expect: undefined }])),
        'conflict',
      );
      await h.writeTick(store, drop('web1', tick + 1));
      assert.equal(await store.getInventory('m1', 'web1'), undefined);
    });
  });

  test('it is accepted with its minion, before it or after it, and goes with it', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putMaster('m1'));
      const pending = await h.writeTick(store, put('web1'));
      const accepted = await h.writeTick(store, h.putMinion('m1', 'web1'), h.putMinion('m1', 'web2'));
      assert.ok(accepted > pending);
      const after = await store.getInventory('m1', 'web1');
      assert.deepEqual([after?.accepted, after?.tick], [true, accepted]);
      await h.writeTick(store, put('web2'));
      assert.equal((await store.getInventory('m1', 'web2'))?.accepted, true);
      // A change of the minion is none of its inventory.
      await h.writeTick(store, { ...h.putMinion('m1', 'web1'), expect: undefined });
      assert.equal((await store.getInventory('m1', 'web1'))?.tick, accepted);
      await h.assertRefused(store.write(h.batch([drop('web1')])), 'conflict');
      await h.writeTick(store, { kind: 'minion.delete', master: 'm1', id: 'web1', expect: undefined });
      assert.equal(await store.getInventory('m1', 'web1'), undefined);
      assert.equal((await store.getInventory('m1', 'web2'))?.accepted, true);
    });
  });

  test('lists are by master and id, of one master or one state, page by page', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putMaster('m1'), h.putMaster('m2'));
      await h.writeTick(
        store,
        put('b'),
        put('a'),
        put('é'),
        put('a', 'absent', 'm2'),
        h.putMinion('m1', 'b'),
      );
      await h.writeTick(store, h.putMinion('m2', 'a'));
      assert.deepEqual(await ids(store, {}), ['m1/a', 'm1/b', 'm1/é', 'm2/a']);
      assert.deepEqual(await ids(store, { master: 'm1' }), ['m1/a', 'm1/b', 'm1/é']);
      assert.deepEqual(await ids(store, { accepted: false }), ['m1/a', 'm1/é']);
      assert.deepEqual(await ids(store, { accepted: true, master: 'm2' }), ['m2/a']);
      const page = await store.listInventories({ accepted: false }, { after: undefined, limit: 1 });
      assert.deepEqual([page.rows[0]?.id, page.next], ['a', 'm1/a']);
      const rest = await store.listInventories({ accepted: false }, { after: page.next, limit: 1 });
      assert.deepEqual([rest.rows[0]?.id, rest.next], ['é', undefined]);
      await h.assertRefused(store.listInventories({}, { after: undefined, limit: 0 }), 'bad_request');
    });
  });
}
