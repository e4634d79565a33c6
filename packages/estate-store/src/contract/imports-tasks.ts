import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseValue } from '@colonnade/value';
import type { EstateStore } from '../port.ts';
import type { EstateView, ImportChange, ViewRows } from '../port-bulk.ts';
import * as h from './harness.ts';

const SCHEMA = parseValue('{"$ref":"#/$defs/a","$defs":{"a":{"minimum":1.0,"maximum":9223372036854775807}}}');
const TYPES = parseValue(
  '[{"type":"order.placed","schema":{"$ref":"#/$defs/a","$defs":{"a":{"minimum":1.0}}}}]',
);
const FACTS = parseValue('{"$os":"Debian","cpus":2,"load":1.0}');

type Copy = Extract<ImportChange, { kind: 'task.copy' }>;
const copy = (id: string, more: Partial<Copy['record']> = {}): Copy => {
  const targets = { minions: [{ master: 'm1', id: 'gone' }], collections: [] };
  const times = { expiresAtMs: undefined, endedAtMs: undefined };
  return {
    kind: 'task.copy',
    record: { id, templateId: 't1', state: 'running', ...targets, ...times, ...more },
  };
};
const facts = (id: string): ImportChange => ({
  ...{ kind: 'inventory.put', expect: 'absent', record: { master: 'm1', id, facts: FACTS } },
});
const pillarOf = (pid: string, id: string) =>
  h.createPillar(pid, { tgtType: 'task', tgtId: id, pillarenv: `task:${id}` });
const OVER = { state: 'failed', endedAtMs: h.NOW_MS - 5 } as const;

async function apply(store: EstateStore, id: string, ...given: readonly unknown[]) {
  const changes = given as ImportChange[];
  await store.stageImport(id, changes);
  const batch = { changes: changes.length, by: 'bob', atMs: h.NOW_MS, events: [] };
  return (await store.applyImport(id, batch)).clock.tick;
}

async function readAll<K extends keyof ViewRows>(view: EstateView, table: K): Promise<ViewRows[K][]> {
  const rows: ViewRows[K][] = [];
  for await (const page of view.pages(table)) rows.push(...page);
  return rows;
}

export function testImportsOfTasks(create: h.CreateHarness): void {
  test('templates, inventories and tasks in any state come with an import, and a view shows them', async () => {
    await h.withStore(create, async (store, harness) => {
      await using reader = await harness.openReader();
      const { clock: since } = await h.look(reader);
      const expiresAtMs = h.NOW_MS + 60_000;
      const tick = await apply(
        store,
        'i',
        ...[pillarOf('p1', 'k1'), pillarOf('p2', 'k2')],
        h.createPillar('p3', { tgtType: 'task_tpl', tgtId: 't1', pillarenv: 'task_tpl:t1;user:eve' }),
        ...[h.putMaster('m1'), h.putMinion('m1', 'web1'), facts('web1'), facts('web2')],
        ...[h.putTemplate('t1', { schema: SCHEMA }), copy('k1', { expiresAtMs }), copy('k2', OVER)],
        copy('k3', { ...OVER, templateId: 'gone' }),
      );
      const written = {
        createdBy: 'bob',
        updatedBy: 'bob',
        createdAtMs: h.NOW_MS,
        updatedAtMs: h.NOW_MS,
        tick,
      };
      await using view = await store.openView();
      assert.deepEqual(await readAll(view, 'templates'), [
        { id: 't1', name: 't1', schema: SCHEMA, ...written },
      ]);
      const tasks = await readAll(view, 'tasks');
      assert.deepEqual(
        tasks.map(({ id, templateId, state, endedAtMs }) => [id, templateId, state, endedAtMs]),
        [
          ['k1', 't1', 'running', undefined],
          ['k2', 't1', 'failed', OVER.endedAtMs],
          ['k3', 'gone', 'failed', OVER.endedAtMs],
        ],
      );
      assert.deepEqual(tasks[0], { ...copy('k1', { expiresAtMs }).record, ...written });
      assert.deepEqual(
        (await readAll(view, 'inventories')).map(({ id, facts: told, accepted }) => [id, told, accepted]),
        [
          ['web1', FACTS, true],
          ['web2', FACTS, false],
        ],
      );
      const seen = await h.look(reader, { since, scopes: ['task:k1', 'task:k2'], tasks: ['k1', 'k2'] });
      for (const key of ['task:k1', 'scope:task:k1', 'task:k2'] as const)
        assert.ok(seen.changed.includes(key));
      assert.deepEqual(
        [...seen.scopes.values()].map((rows) => rows.map(({ pid }) => pid)),
        [['p1'], ['p2']],
      );
      assert.equal(seen.tasks.get('k2')?.state, 'failed');
    });
  });

  test('of a task that is there the state goes on; what does not fit changes nothing', async () => {
    await h.withStore(create, async (store) => {
      await h.writeTick(store, h.putMaster('m1'), h.putTemplate('t1'));
      await apply(store, 'i', copy('k1'), copy('k2', OVER), pillarOf('p2', 'k2'));
      const setState = { kind: 'task.setState', id: 'k1', expectTick: undefined, state: 'succeeded' };
      await apply(store, 'on', setState);
      assert.equal((await store.getTask('k1'))?.state, 'succeeded');
      const before = await h.dump(store);
      const cases: [why: string, change: unknown, code: Parameters<typeof h.assertRefused>[1]][] = [
        ['made meanwhile', copy('k1'), 'precondition_failed'],
        ['backwards', { ...setState, id: 'k2', state: 'running' }, 'conflict'],
        ['changed meanwhile', { ...setState, expectTick: 1 }, 'precondition_failed'],
        ['no template', copy('k3', { templateId: 'gone' }), 'not_found'],
        ['an end that is none', copy('k3', { endedAtMs: 5 }), 'bad_request'],
        ['no end', copy('k3', { state: 'failed' }), 'bad_request'],
        ['for nobody', copy('k3', { minions: [] }), 'bad_request'],
        ['of a task that had ended', pillarOf('p3', 'k2'), 'conflict'],
        ['template made meanwhile', h.putTemplate('t1'), 'precondition_failed'],
      ];
      for (const [why, change, code] of cases) {
        await h.assertRefused(apply(store, why, h.createPillar(`fine ${why}`), change), code, why);
        assert.deepEqual(await h.dump(store), before, why);
        assert.equal(await store.getTask('k3'), undefined, why);
      }
    });
  });

  test('services come with an import as they are put, and a view shows them', async () => {
    await h.withStore(create, async (store) => {
      const service = (id: string, expect: number | 'absent', enrolmentIds: readonly string[] = []) => {
        return { kind: 'service.put', expect, record: { id, types: TYPES, enrolmentIds } };
      };
      const first = await apply(store, 'i', service('shop', 'absent'), service('mill', 'absent'));
      await apply(store, 'on', service('shop', first, ['enrolment-00000001']));
      await using view = await store.openView();
      assert.deepEqual(
        (await readAll(view, 'services')).map(({ id, types, enrolmentIds }) => [id, types, enrolmentIds]),
        [
          ['mill', TYPES, []],
          ['shop', TYPES, ['enrolment-00000001']],
        ],
      );
      const before = await h.dump(store);
      for (const expect of ['absent', first] as const)
        await h.assertRefused(
          apply(store, `${expect}`, h.createPillar('fine'), service('shop', expect)),
          'precondition_failed',
        );
      assert.deepEqual(await h.dump(store), before);
    });
  });
}
