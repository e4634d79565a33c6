import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseValue } from '@colonnade/value';
import type { Mutation } from '../port.ts';
import * as h from './harness.ts';

const TYPES = parseValue('[{"type":"order.placed","schema":{"$ref":"#/$defs/a","maximum":1.0}}]');

type Put = Extract<Mutation, { kind: 'service.put' }>;
const put = (id: string, expect: Put['expect'] = 'absent', more: Partial<Put['record']> = {}): Put => ({
  ...{ kind: 'service.put', expect, record: { id, types: TYPES, enrolmentIds: ['b', 'a'], ...more } },
});
const drop = (id: string, expect?: number): Mutation => ({ kind: 'service.delete', id, expect });

export function testServices(create: h.CreateHarness): void {
  test('a service is put, changed and deleted; its types come back exactly', async () => {
    await h.withStore(create, async (store) => {
      const tick = await h.writeTick(store, put('shop'));
      const first = { id: 'shop', types: TYPES, enrolmentIds: ['b', 'a'], tick };
      assert.deepEqual(await store.getService('shop'), first);
      const change = put('shop', tick, { types: [], enrolmentIds: [] });
      const next = await h.writeTick(store, change);
      assert.deepEqual(await store.getService('shop'), {
        ...{ id: 'shop', types: [], enrolmentIds: [], tick: next },
      });
      for (const [code, refused] of [
        ['precondition_failed', change],
        ['already_exists', put('shop')],
        ['not_found', put('mill', 1)],
        ['precondition_failed', drop('shop', tick)],
        ['not_found', drop('mill')],
      ] as const)
        await h.assertRefused(store.write(h.batch([refused])), code, code);
      await h.writeTick(store, drop('shop', next));
      assert.equal(await store.getService('shop'), undefined);
    });
  });

  test('services are listed in the order of their names, in pages', async () => {
    await h.withStore(create, async (store) => {
      for (const id of ['c', 'a', 'b']) await h.writeTick(store, put(id));
      const first = await store.listServices({ after: undefined, limit: 2 });
      assert.deepEqual([first.rows.map(({ id }) => id), first.next], [['a', 'b'], 'b']);
      const second = await store.listServices({ after: first.next, limit: 2 });
      assert.deepEqual([second.rows.map(({ id }) => id), second.next], [['c'], undefined]);
    });
  });
}
