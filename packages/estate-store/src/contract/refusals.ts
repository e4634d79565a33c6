import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ErrorCode } from '@colonnade/contracts';
import type { Value } from '@colonnade/value';
import type { EstateStore, Mutation } from '../port.ts';
import * as h from './harness.ts';

/** Every kind of refusal; each stands after a mutation that alone would succeed. */
const REFUSALS: readonly (readonly [ErrorCode, string, Mutation])[] = [
  ['already_exists', 'pillar with a taken key', h.createPillar('new', { name: 'root-pillar' })],
  ['conflict', 'pillar with a used pid', h.createPillar('gone')],
  [
    'not_found',
    'pillar of an unknown collection',
    h.createPillar('new', { tgtType: 'collection', tgtId: 'nope' }),
  ],
  ['not_found', 'update of an unknown pillar', h.updatePillar('nope', 1n)],
  ['not_found', 'update of a deleted pillar', h.updatePillar('gone', 1n)],
  ['precondition_failed', 'update of an older tick', h.updatePillar('p1', 1n, 1_000_000)],
  ['not_found', 'delete of an unknown pillar', h.deletePillar('nope')],
  ['precondition_failed', 'delete of an older tick', h.deletePillar('p1', 0)],
  ['bad_request', 'two changes of one pillar', h.updatePillar('p2', 1n)],
  ['already_exists', 'new collection with a taken id', h.putCollection('top')],
  ['not_found', 'change of an unknown collection', { ...h.putCollection('nope'), expect: undefined }],
  ['precondition_failed', 'change of an older collection', { ...h.putCollection('top'), expect: 0 }],
  ['not_found', 'collection below an unknown one', h.putCollection('c9', { parentId: 'nope' })],
  [
    'conflict',
    'collection with another owner than its parent',
    h.putCollection('c9', { parentId: 'top', owner: 'bob' }),
  ],
  [
    'conflict',
    'collection below itself',
    { ...h.putCollection('top', { parentId: 'top' }), expect: undefined },
  ],
  [
    'conflict',
    'collection below its child',
    { ...h.putCollection('top', { parentId: 'leaf' }), expect: undefined },
  ],
  [
    'conflict',
    'another owner for a tree with pillars',
    { ...h.putCollection('top', { owner: 'bob' }), expect: undefined },
  ],
  [
    'conflict',
    'delete of a collection with children',
    { kind: 'collection.delete', id: 'top', expect: undefined },
  ],
  [
    'conflict',
    'delete of a collection with members',
    { kind: 'collection.delete', id: 'club', expect: undefined },
  ],
  [
    'conflict',
    'delete of a collection with pillars',
    { kind: 'collection.delete', id: 'leaf', expect: undefined },
  ],
  [
    'not_found',
    'delete of an unknown collection',
    { kind: 'collection.delete', id: 'nope', expect: undefined },
  ],
  [
    'bad_request',
    'delete of what must be absent',
    { kind: 'collection.delete', id: 'leaf', expect: 'absent' },
  ],
  ['already_exists', 'new master with a taken id', h.putMaster('m1')],
  ['not_found', 'change of an unknown master', { ...h.putMaster('nope'), expect: undefined }],
  ['precondition_failed', 'change of an older master', { ...h.putMaster('m1'), expect: 0 }],
  ['conflict', 'delete of a master with minions', { kind: 'master.delete', id: 'm1', expect: undefined }],
  ['unknown_master', 'minion of an unknown master', h.putMinion('nope', 'web9')],
  ['not_found', 'minion in an unknown collection', h.putMinion('m1', 'web9', ['top', 'nope'])],
  ['bad_request', 'minion twice in a collection', h.putMinion('m1', 'web9', ['top', 'top'])],
  ['already_exists', 'new minion with a taken id', h.putMinion('m1', 'web1')],
  ['precondition_failed', 'change of an older minion', { ...h.putMinion('m1', 'web1'), expect: 0 }],
  [
    'conflict',
    'delete of a minion with pillars',
    { kind: 'minion.delete', master: 'm1', id: 'web1', expect: undefined },
  ],
  [
    'not_found',
    'delete of an unknown minion',
    { kind: 'minion.delete', master: 'm1', id: 'nope', expect: undefined },
  ],
  ['already_exists', 'new token with a taken id', h.putToken('t1')],
  ['precondition_failed', 'delete of an older token', { kind: 'token.delete', id: 't1', expect: 0 }],
];

async function fill(store: EstateStore): Promise<void> {
  await h.writeTick(
    store,
    ...[h.putCollection('top'), h.putCollection('leaf', { parentId: 'top' }), h.putCollection('club')],
    ...[h.putMaster('m1'), h.putMinion('m1', 'web1', ['club']), h.putToken('t1')],
    ...[h.createPillar('p1', { name: 'root-pillar' }), h.createPillar('p2'), h.createPillar('gone')],
    h.createPillar('p3', { tgtType: 'collection', tgtId: 'leaf', pillarenv: 'collection:leaf;user:ada' }),
    h.createPillar('p4', { tgtType: 'minion', tgtId: 'web1', pillarenv: 'minion_id:web1;master:m1' }),
  );
  await store.write(h.batch([h.deletePillar('gone')], [h.event({ gone: true })]));
}

export function testRefusals(create: h.CreateHarness): void {
  test('every refusal leaves the clock and all rows as they were', async () => {
    await h.withStore(create, async (store) => {
      await fill(store);
      const before = await h.dump(store);
      const { clock } = await h.look(store);
      for (const [code, label, mutation] of REFUSALS) {
        const idempotency = {
          scope: 's',
          fingerprint: label,
          response: null,
          expiresAtMs: Date.now() + 60_000,
        };
        const good = [h.updatePillar('p2', 99n), h.createPillar('p9'), h.putCollection('c8')];
        const refused = h.batch([...good, mutation], [h.event({ label })], { idempotency });
        await h.assertRefused(store.write(refused), code, label);
        assert.deepEqual(await h.dump(store), before, label);
        assert.equal(await store.findIdempotent('s'), undefined, label);
      }
      assert.deepEqual((await h.look(store, { since: clock })).changed, []);
      assert.equal(await h.writeTick(store, h.createPillar('p9')), clock.tick + 1);
    });
  });

  test('a batch of nothing, and a value that cannot be kept, are refused', async () => {
    await h.withStore(create, async (store) => {
      await h.assertRefused(store.write(h.batch([])), 'bad_request');
      const unfit: readonly unknown[] = [
        2n ** 63n,
        Number.NaN,
        '\ud800',
        { '\udc00': 1n },
        undefined,
        new Date(0),
      ];
      for (const value of unfit) {
        const refused = store.write(h.batch([h.createPillar('p1', { value: value as Value })]));
        await h.assertRefused(refused, 'value_invalid', String(value));
      }
      assert.equal((await h.look(store)).clock.tick, 0);
    });
  });

  test('a page is asked for with a limit and a cursor that fit', async () => {
    await h.withStore(create, async (store) => {
      for (const limit of [0, -1, 1.5, 501, Number.NaN]) {
        const page = { after: undefined, limit };
        await h.assertRefused(
          store.listPillars({ tgtTypes: ['root'] }, page),
          'bad_request',
          `pillars ${limit}`,
        );
        await h.assertRefused(store.listMinions({}, page), 'bad_request', `minions ${limit}`);
      }
    });
  });
}
