import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '@colonnade/contracts';
import { parseValue } from '@colonnade/value';
import type { EstateStore, Mutation } from '../port.ts';
import * as h from './harness.ts';

const SCHEMA = parseValue('{"$schema":"x","$ref":"#/$defs/a","$defs":{"a":{"minimum":1.0,"maximum":2}}}');
const EVERYTHING = { after: undefined, limit: 500 };

const del = (id: string): Mutation => ({ kind: 'task.delete', id, expectTick: undefined });
const dropTemplate = (id: string): Mutation => ({ kind: 'template.delete', id, expect: undefined });
const state = (id: string, to: 'created' | 'running' | 'succeeded' | 'failed' | 'cancelled'): Mutation => ({
  ...{ kind: 'task.setState', id, expectTick: undefined, state: to },
});
const taskPillar = (pid: string, id: string, env = `task:${id}`) =>
  h.createPillar(pid, { tgtType: 'task', tgtId: id, pillarenv: env });
const tplPillar = (pid: string, id: string, env = `task_tpl:${id};user:ada`) =>
  h.createPillar(pid, { tgtType: 'task_tpl', tgtId: id, pillarenv: env });

async function withFleet(create: h.CreateHarness, run: Parameters<typeof h.withStore>[1]): Promise<void> {
  await h.withStore(create, async (store, harness) => {
    await h.writeTick(store, h.putMaster('m1'), h.putCollection('c1'));
    await h.writeTick(store, h.putMinion('m1', 'web1'), h.putMinion('m1', 'web2'));
    await h.writeTick(store, h.putTemplate('t1', { schema: SCHEMA }));
    await run(store, harness);
  });
}

export function testTasks(create: h.CreateHarness): void {
  test('a template is made, changed and deleted; its schema comes back exactly', async () => {
    await withFleet(create, async (store) => {
      const first = await store.getTemplate('t1');
      assert.deepEqual(first, {
        ...{ id: 't1', name: 't1', schema: SCHEMA, createdBy: 'ada', updatedBy: 'ada' },
        ...{ createdAtMs: h.NOW_MS, updatedAtMs: h.NOW_MS, tick: 3 },
      });
      const change = { ...h.putTemplate('t1', { name: 'two', schema: 1n }), expect: 3 };
      await store.write(h.batch([change], [], { by: 'bob', atMs: h.NOW_MS + 7 }));
      const second = { name: 'two', schema: 1n, updatedBy: 'bob', updatedAtMs: h.NOW_MS + 7, tick: 4 };
      assert.deepEqual(await store.getTemplate('t1'), { ...first, ...second });
      await h.assertRefused(store.write(h.batch([change])), 'precondition_failed');
      await h.assertRefused(store.write(h.batch([h.putTemplate('t1')])), 'already_exists');
      const unknown = { ...h.putTemplate('t9'), expect: undefined };
      await h.assertRefused(store.write(h.batch([unknown])), 'not_found');
      await h.writeTick(store, dropTemplate('t1'));
      assert.equal(await store.getTemplate('t1'), undefined);
    });
  });

  test('a task is made with its pillars at one tick, runs, ends, and goes', async () => {
    await withFleet(create, async (store, harness) => {
      await using reader = await harness.openReader();
      const { clock } = await h.look(reader);
      const draft = h.createTask('k1', { collections: ['c1'], expiresAtMs: h.NOW_MS + 60_000 });
      const tick = await h.writeTick(store, draft, taskPillar('p1', 'k1'), tplPillar('p2', 't1'));
      const made = {
        ...{ id: 'k1', templateId: 't1', state: 'created', minions: [{ master: 'm1', id: 'web1' }] },
        ...{ collections: ['c1'], createdBy: 'ada', updatedBy: 'ada', createdAtMs: h.NOW_MS },
        ...{ updatedAtMs: h.NOW_MS, expiresAtMs: h.NOW_MS + 60_000, endedAtMs: undefined, tick },
      };
      assert.deepEqual(await store.getTask('k1'), made);
      const seen = await h.look(reader, { since: clock, scopes: ['task:k1'], tasks: ['k1', 'k2'] });
      assert.deepEqual([...seen.tasks], [
        ['k1', made],
        ['k2', undefined],
      ] as never);
      assert.deepEqual(seen.scopes.get('task:k1'), [await store.getPillar('p1')]);
      const keys = ['scope:task:k1', 'scope:task_tpl:t1;user:ada', 'task:k1'];
      assert.deepEqual([...seen.changed].sort(), keys);

      await h.writeTick(store, state('k1', 'running'));
      assert.equal((await store.getTask('k1'))?.endedAtMs, undefined);
      await store.write(h.batch([state('k1', 'failed')], [], { by: 'bob', atMs: h.NOW_MS + 9 }));
      const ended = await store.getTask('k1');
      assert.deepEqual([ended?.state, ended?.endedAtMs, ended?.updatedBy], ['failed', h.NOW_MS + 9, 'bob']);
      assert.deepEqual((await h.look(reader, { since: seen.clock })).changed, ['task:k1']);

      await h.assertRefused(store.write(h.batch([del('k1')])), 'conflict', 'has pillars');
      await h.writeTick(store, h.deletePillar('p1'), del('k1'));
      assert.equal(await store.getTask('k1'), undefined);
    });
  });

  test('states go forwards only, each end is final, and a write expects the tick it read', async () => {
    await withFleet(create, async (store) => {
      for (const end of ['succeeded', 'failed', 'cancelled'] as const) {
        const tick = await h.writeTick(store, h.createTask(end));
        await h.assertRefused(store.write(h.batch([state(end, 'created')])), 'conflict');
        const late = { ...state(end, end), expectTick: tick - 1 } as Mutation;
        await h.assertRefused(store.write(h.batch([late])), 'precondition_failed');
        await h.writeTick(store, { ...state(end, end), expectTick: tick } as Mutation);
        for (const to of ['created', 'running', 'succeeded', 'failed', 'cancelled'] as const) {
          await h.assertRefused(store.write(h.batch([state(end, to)])), 'conflict', `${end} to ${to}`);
        }
      }
      await h.assertRefused(store.write(h.batch([state('nope', 'running')])), 'not_found');
    });
  });

  test('what a task and its pillars need must be there', async () => {
    await withFleet(create, async (store) => {
      await h.writeTick(store, h.createTask('k1'), h.createTask('k2'));
      await h.writeTick(store, state('k2', 'cancelled'));
      const before = await dumpTasks(store);
      const minions = (...ids: string[]) => ({ minions: ids.map((id) => ({ master: 'm1', id })) });
      const many = Array.from({ length: LIMITS.minionsPerTask + 1 }, (_, i) => `w${i}`);
      const refusals = [
        ['already_exists', h.createTask('k1')],
        ['not_found', h.createTask('k3', { templateId: 'nope' })],
        ['unknown_minion', h.createTask('k3', minions('web1', 'nope'))],
        ['not_found', h.createTask('k3', { collections: ['c1', 'nope'] })],
        ['bad_request', h.createTask('k3', minions())],
        ['bad_request', h.createTask('k3', minions('web1', 'web1'))],
        ['bad_request', h.createTask('k3', minions(...many))],
        ['not_found', taskPillar('p1', 'nope')],
        ['conflict', taskPillar('p1', 'k2')],
        ['bad_request', taskPillar('p1', 'k1', 'task:k2')],
        ['bad_request', taskPillar('p1', 'k1', 'base')],
        ['not_found', tplPillar('p1', 'nope')],
        ['bad_request', tplPillar('p1', 't1', 'task_tpl:t1')],
        ['bad_request', tplPillar('p1', 't1', 'task_tpl:t2;user:ada')],
        ['bad_request', tplPillar('p1', 't1', 'task_tpl:t1;user:a;b')],
        ['conflict', del('k1')],
        ['not_found', del('nope')],
        ['conflict', dropTemplate('t1')],
        ['not_found', dropTemplate('nope')],
      ] as const;
      for (const [code, mutation] of refusals) {
        await h.assertRefused(store.write(h.batch([mutation])), code, JSON.stringify(mutation, h.showBigint));
      }
      assert.deepEqual(await dumpTasks(store), before);
    });
  });

  test('a template goes when no default and no task that has not ended hangs on it', async () => {
    await withFleet(create, async (store) => {
      await h.writeTick(store, h.createTask('k1'), tplPillar('p1', 't1'));
      await h.assertRefused(store.write(h.batch([dropTemplate('t1')])), 'conflict', 'both');
      await h.writeTick(store, h.deletePillar('p1'));
      await h.assertRefused(store.write(h.batch([dropTemplate('t1')])), 'conflict', 'a task');
      await h.writeTick(store, state('k1', 'succeeded'));
      await h.writeTick(store, dropTemplate('t1'));
      assert.equal((await store.getTask('k1'))?.templateId, 't1');
    });
  });

  test('lists come in pages, in the order of ids, by template and by state', async () => {
    await withFleet(create, async (store) => {
      await h.writeTick(store, h.putTemplate('t2'), h.putTemplate('t0'));
      const ids = Array.from({ length: 9 }, (_, i) => `k${i}`);
      const tasks = ids.map((id, i) => h.createTask(id, { templateId: i % 2 === 0 ? 't1' : 't2' }));
      await h.writeTick(store, ...tasks);
      await h.writeTick(store, state('k2', 'running'), state('k3', 'running'), state('k4', 'running'));
      const list = async (filter: Parameters<EstateStore['listTasks']>[0]) =>
        (await store.listTasks(filter, EVERYTHING)).rows.map(({ id }) => id);
      assert.deepEqual(await list({}), ids);
      assert.deepEqual(await list({ templateId: 't2' }), ['k1', 'k3', 'k5', 'k7']);
      assert.deepEqual(await list({ state: 'running' }), ['k2', 'k3', 'k4']);
      assert.deepEqual(await list({ templateId: 't1', state: 'running' }), ['k2', 'k4']);
      const first = await store.listTasks({}, { after: undefined, limit: 4 });
      assert.deepEqual([first.rows.length, first.next], [4, 'k3']);
      const second = await store.listTasks({}, { after: first.next, limit: 5 });
      assert.deepEqual([second.rows[0]?.id, second.next], ['k4', undefined]);
      const templates = await store.listTemplates({ after: 't0', limit: 1 });
      assert.deepEqual([templates.rows.map(({ id }) => id), templates.next], [['t1'], 't1']);
      await h.assertRefused(store.listTasks({}, { after: undefined, limit: 0 }), 'bad_request');
      await h.assertRefused(store.listTemplates({ after: undefined, limit: 501 }), 'bad_request');
    });
  });
}

async function dumpTasks(store: EstateStore): Promise<unknown> {
  const [templates, tasks] = [await store.listTemplates(EVERYTHING), await store.listTasks({}, EVERYTHING)];
  return { templates, tasks, rest: await h.dump(store) };
}
