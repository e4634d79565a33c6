import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalText, parseValue } from '@colonnade/value';
import type { EstateStore } from '../port.ts';
import type { EstateView, ImportChange, ViewRows } from '../port-bulk.ts';
import * as h from './harness.ts';

const range = (length: number) => Array.from({ length }, (_, i) => i);
const changesOf = (...changes: readonly unknown[]) => changes as ImportChange[];

async function apply(
  store: EstateStore,
  id: string,
  changes: readonly ImportChange[],
  events = [h.event({})],
) {
  await store.stageImport(id, changes);
  return await store.applyImport(id, { changes: changes.length, by: 'bob', atMs: h.NOW_MS, events });
}

async function readAll<K extends keyof ViewRows>(view: EstateView, table: K): Promise<ViewRows[K][]> {
  const rows: ViewRows[K][] = [];
  for await (const page of view.pages(table)) rows.push(...page);
  return rows;
}

async function valueOfPillar(store: EstateStore, pid: string): Promise<string | undefined> {
  const pillar = await store.getPillar(pid);
  return pillar && canonicalText(pillar.value);
}

export function testImports(create: h.CreateHarness): void {
  test('what is staged is seen by nobody, moves no clock, and is applied with one tick', async () => {
    await h.withStore(create, async (store, harness) => {
      await h.writeTick(store, h.createPillar('old', { name: 'old' }));
      const before = await h.dump(store);
      const minion = { tgtType: 'minion', tgtId: 'w1', pillarenv: 'minion_id:w1;master:m1' } as const;
      const collection = { tgtType: 'collection', tgtId: 'c', pillarenv: 'collection:c;user:ada' } as const;
      // Pillars first: the switch puts them behind what they hang on.
      await store.stageImport(
        'i',
        changesOf(
          h.createPillar('p1', minion),
          h.createPillar('p2', collection),
          h.updatePillar('old', 2n, 1),
        ),
      );
      await store.stageImport(
        'i',
        changesOf(
          h.putMaster('m1'),
          h.putCollection('c'),
          h.putCollection('d', { parentId: 'c' }),
          h.putMinion('m1', 'w1', ['d']),
        ),
      );
      assert.deepEqual(await h.dump(store), before);
      await using reader = await harness.openReader();
      const { clock: since } = await h.look(reader);
      const events = [h.event({ n: 1n }), h.event({ n: 2n })];
      const { clock } = await store.applyImport('i', { changes: 7, by: 'bob', atMs: h.NOW_MS, events });
      assert.equal(clock.tick, since.tick + 1);
      const scopes = ['base', minion.pillarenv, collection.pillarenv];
      const seen = await h.look(reader, { since, scopes, minions: [{ master: 'm1', id: 'w1' }] });
      assert.deepEqual(seen.clock, clock);
      assert.deepEqual([...seen.changed].sort(), [
        ...['collections', 'master:m1', 'minion:m1/w1'],
        ...scopes.map((scope) => `scope:${scope}`).sort(),
      ]);
      assert.deepEqual(
        scopes.map((scope) => seen.scopes.get(scope)?.map(({ pid, tick }) => [pid, tick])),
        [[['old', 2]], [['p1', 2]], [['p2', 2]]],
      );
      assert.deepEqual(seen.minions.get('m1/w1')?.collections, ['d']);
      const old = await store.getPillar('old');
      assert.deepEqual([old?.value, old?.createdBy, old?.updatedBy], [2n, 'ada', 'bob']);
      for (const [pid, ops] of [
        ['old', ['create', 'update']],
        ['p1', ['create']],
      ] as const) {
        const versions = await store.listVersions(pid);
        assert.deepEqual(
          versions.map(({ op }) => op),
          ops,
        );
        assert.deepEqual(
          { ...versions.at(-1), op: 0, purged: 0 },
          { ...(await store.getPillar(pid)), op: 0, purged: 0 },
        );
      }
      assert.deepEqual(
        (await store.readOutbox(10)).map(({ tick, index }) => [tick, index]),
        [
          [2, 0],
          [2, 1],
        ],
      );
      await h.assertRefused(
        store.applyImport('i', { changes: 7, by: 'bob', atMs: 1, events: [] }),
        'conflict',
      );
    });
  });

  test('values come through the staging as they are', async () => {
    await h.withStore(create, async (store) => {
      const texts = [
        ...[
          '1',
          '1.0',
          '-0.0',
          '9223372036854775807',
          '"\\u0000é😀"',
          'null',
          '[]',
          '{}',
          '[[1,1.0,"x"],{"a":null}]',
        ],
        ...['{"$ref":1,"$id":2}', '{"_bsontype":"Long","__proto__":{"a":1}}', '{"a.b":1,"$x":[1.5]}'],
      ];
      const changes = texts.map((text, i) => h.createPillar(`p${i}`, { value: parseValue(text) }));
      await apply(store, 'i', changesOf(...changes));
      for (const [i, text] of texts.entries()) {
        const canonical = canonicalText(parseValue(text));
        assert.equal(await valueOfPillar(store, `p${i}`), canonical);
        const again = parseValue(`[${text}]`);
        await apply(store, `again-${i}`, changesOf(h.updatePillar(`p${i}`, again)));
        assert.equal(await valueOfPillar(store, `p${i}`), canonicalText(again));
      }
    });
  });

  test('an import that is not as expected any more changes nothing at all', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.createPillar('old'), h.putCollection('c'), h.putMaster('m1'));
      const stale: [why: string, change: unknown, code: Parameters<typeof h.assertRefused>[1]][] = [
        ['changed', h.updatePillar('old', 2n, 7), 'precondition_failed'],
        ['deleted', h.updatePillar('gone', 2n, 1), 'precondition_failed'],
        ['made', h.createPillar('new', { name: 'old' }), 'precondition_failed'],
        ['collection made', h.putCollection('c'), 'precondition_failed'],
        ['collection changed', { ...h.putCollection('c'), expect: 9 }, 'precondition_failed'],
        ['pid used', h.createPillar('old', { name: 'other' }), 'conflict'],
        [
          'no such minion',
          h.createPillar('new', { tgtType: 'minion', tgtId: 'w', pillarenv: 'minion_id:w;master:m1' }),
          'unknown_minion',
        ],
        [
          'no such collection',
          h.createPillar('new', { tgtType: 'collection', tgtId: 'x', pillarenv: 'collection:x;user:ada' }),
          'not_found',
        ],
        [
          'another owner',
          h.createPillar('new', { tgtType: 'collection', tgtId: 'c', pillarenv: 'collection:c;user:eve' }),
          'conflict',
        ],
      ];
      const before = await h.dump(store);
      for (const [why, change, code] of stale) {
        const changes = changesOf(h.putMinion('m1', 'w9'), h.createPillar(`fine ${why}`), change);
        await h.assertRefused(apply(store, why, changes), code, why);
        assert.deepEqual(await h.dump(store), before, why);
        await store.dropImport(why);
      }
      await store.stageImport('short', changesOf(h.createPillar('p1')));
      const more = store.applyImport('short', { changes: 2, by: 'bob', atMs: 1, events: [] });
      await h.assertRefused(more, 'conflict');
      await store.dropImport('short');
      await h.assertRefused(
        store.applyImport('short', { changes: 1, by: 'bob', atMs: 1, events: [] }),
        'conflict',
      );
      await h.assertRefused(
        store.stageImport('big', changesOf(...range(201).map((i) => h.createPillar(`b${i}`)))),
        'bad_request',
      );
      assert.deepEqual(await h.dump(store), before);
    });
  });

  test('idle imports are swept, others and what is applied stay', async () => {
    await h.withStore(create, async (store) => {
      for (let i = 0; i < 6; i++) {
        await store.stageImport('left', changesOf(...range(150).map((n) => h.createPillar(`l${i}-${n}`))));
      }
      await store.stageImport('other', changesOf(h.createPillar('p1')));
      assert.equal(await store.sweepImports(60_000), 0);
      assert.equal(await store.sweepImports(-60_000), 2);
      assert.equal(await store.sweepImports(-60_000), 0);
      await h.assertRefused(
        store.applyImport('other', { changes: 1, by: 'b', atMs: 1, events: [] }),
        'conflict',
      );
      await apply(store, 'left', changesOf(h.createPillar('l0-0')));
      assert.equal((await h.look(store, { scopes: ['base'] })).scopes.get('base')?.length, 1);
    });
  });

  test('a view is of one moment, in order, whatever is written while it is read', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putCollection('c2'), h.putCollection('c1'), h.putMaster('m1'));
      await h.writeTick(store, ...range(20).map((i) => h.putMinion('m1', `w${i}`, ['c1'])));
      await h.writeTick(
        store,
        ...range(250).map((i) => h.createPillar(`p${i}`, { name: `n${(i * 7) % 250}` })),
      );
      await using view = await store.openView();
      const pages = view.pages('pillars')[Symbol.asyncIterator]();
      const first = await pages.next();
      await h.writeTick(
        store,
        h.deletePillar('p249'),
        h.updatePillar('p248', 1n),
        h.createPillar('q', { name: 'n999' }),
        h.putCollection('c3'),
      );
      const rows = first.done ? [] : [...first.value];
      for (let page = await pages.next(); !page.done; page = await pages.next()) rows.push(...page.value);
      assert.deepEqual(
        rows.map(({ name }) => name),
        range(250)
          .map((i) => `n${i}`)
          .sort(),
      );
      assert.equal(
        rows.every(({ tick }) => tick === 3),
        true,
      );
      assert.deepEqual(
        (await readAll(view, 'collections')).map(({ id }) => id),
        ['c1', 'c2'],
      );
      assert.deepEqual(
        (await readAll(view, 'minions')).map(({ id }) => id),
        range(20)
          .map((i) => `w${i}`)
          .sort(),
      );
      assert.deepEqual(
        (await readAll(view, 'masters')).map(({ id }) => id),
        ['m1'],
      );
      assert.equal(view.clock.tick, 3);
    });
  });

  test('a search finds what fits, slice by slice', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putCollection('c'));
      const value = (i: number) => parseValue(`{"port":${8000 + i},"host":"h${i}.example.org"}`);
      await h.writeTick(
        store,
        ...range(450).map((i) =>
          h.createPillar(`p${String(i).padStart(3, '0')}`, {
            name: `n${i}`,
            value: value(i),
            isSecret: i % 100 === 50,
          }),
        ),
      );
      const in2 = h.createPillar('q', {
        tgtType: 'collection',
        tgtId: 'c',
        pillarenv: 'collection:c;user:ada',
        name: 'N.1',
      });
      await store.write(h.batch([in2], [], { by: 'eve', atMs: h.NOW_MS + 5000 }));
      const all = { tgtTypes: ['root', 'collection', 'minion'] } as const;
      const find = async (search: object, limit = 50) => {
        const pids: string[] = [];
        let after: string | undefined;
        for (let calls = 0; ; calls++) {
          assert.ok(calls < 500);
          const { rows, next } = await store.searchPillars({ ...all, ...search }, { after, limit });
          assert.ok(rows.length <= limit);
          pids.push(...rows.map(({ pid }) => pid));
          if (next === undefined) return pids;
          after = next;
        }
      };
      assert.equal((await find({})).length, 451);
      assert.deepEqual(await find({ name: 'n7' }), ['p007']);
      assert.deepEqual(await find({ namePrefix: 'n44' }, 3), ['p044', ...range(10).map((i) => `p44${i}`)]);
      assert.deepEqual(await find({ namePrefix: 'N.' }), ['q']);
      assert.deepEqual(await find({ namePrefix: 'N%' }), []);
      assert.deepEqual(await find({ value: '"port":8449' }), ['p449']);
      assert.deepEqual(await find({ value: 'h50.example' }), [], 'a secret is never found by its value');
      assert.deepEqual(await find({ pillarenvs: ['collection:c;user:ada', 'x'] }), ['q']);
      assert.deepEqual(await find({ tgtTypes: ['collection'] }), ['q']);
      assert.deepEqual([await find({ createdBy: 'eve' }), await find({ updatedBy: 'nobody' })], [['q'], []]);
      assert.deepEqual(await find({ sinceMs: h.NOW_MS + 5000 }), ['q']);
      assert.equal((await find({ untilMs: h.NOW_MS + 5000 })).length, 450);
      await h.assertRefused(store.searchPillars(all, { after: undefined, limit: 501 }), 'bad_request');
    });
  });
}
