import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CollectionRecord, TASK_STATES, type TaskRecord } from '@colonnade/estate-store';
import fc from 'fast-check';
import { createCollectionTree } from './collection-tree.ts';
import { findForbiddenEnv } from './entitlement.ts';
import { resolveEnvs, scopesToRead } from './resolve.ts';

const ME = { master: 'm1', id: 'web-1' };
const OWN_SCOPE = 'minion_id:web-1;master:m1';
const IDS = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
const OWNERS = ['ann', 'bob'] as const;
const LISTED = ['prod', 'dev'] as const;

type Forest = { collections: CollectionRecord[]; member: string[]; envs: string[] };

const someForest: fc.Arbitrary<Forest> = fc
  .record({
    picks: fc.array(fc.tuple(fc.nat(), fc.constantFrom(...OWNERS)), { minLength: 1, maxLength: IDS.length }),
    member: fc.uniqueArray(fc.nat(), { maxLength: 3 }),
    envs: fc.subarray([...LISTED]),
  })
  .map(({ picks, member, envs }) => {
    const collections: CollectionRecord[] = [];
    for (const [i, [pick, owner]] of picks.entries()) {
      const parent = i === 0 || pick % 3 === 0 ? undefined : collections[pick % i];
      const id = IDS[i] as string;
      collections.push({ id, name: id, parentId: parent?.id, owner: parent?.owner ?? owner, tick: 1 });
    }
    const ids = [...new Set(member.map((n) => IDS[n % collections.length] as string))];
    return { collections, member: ids, envs };
  });

const hostileEnv = fc.oneof(
  fc.constantFrom(
    'base',
    'prod',
    'dev',
    'staging',
    '',
    ' base',
    'Base',
    'base;user:ann',
    'task:t',
    'task_tpl:t;user:ann',
  ),
  fc.constantFrom(OWN_SCOPE, 'minion_id:db-1;master:m1', 'minion_id:web-1;master:m2', 'minion_id:web-1'),
  fc
    .tuple(
      fc.constantFrom(...IDS, 'zz', ''),
      fc.constantFrom('', ';user:ann', ';user:bob', ';user:', ';user:ann;user:bob'),
    )
    .map(([id, user]) => `collection:${id}${user}`),
  fc.string({ unit: 'grapheme', maxLength: 8 }),
);
const someRequest = fc.array(hostileEnv, { minLength: 1, maxLength: 5 }).map((envs) => envs.join(','));

/** The rule of entitlement, written out as the set of scopes that are meant for the minion. */
function meantFor({ collections, member, envs }: Forest): Set<string> {
  const meant = new Set<string>(['base', ...envs]);
  const add = (id: string | undefined): void => {
    const collection = collections.find((c) => c.id === id);
    if (collection === undefined) return;
    meant.add(`collection:${collection.id}`);
    meant.add(`collection:${collection.id};user:${collection.owner}`);
    add(collection.parentId);
  };
  member.forEach(add);
  return meant;
}

function ask(forest: Forest, pillarenv: string, tasks: Readonly<Record<string, TaskRecord>> = {}) {
  const tree = createCollectionTree(forest.collections);
  const minion = { ...ME, collections: forest.member, registeredBy: 't', tick: 1 };
  const envs = resolveEnvs(pillarenv, minion, tree);
  const asker = { master: { envs: forest.envs }, minion, tree, task: (id: string) => tasks[id], nowMs: 1000 };
  const forbidden = findForbiddenEnv(envs, asker, 'entitled');
  return {
    envs,
    forbidden,
    scopes: scopesToRead(envs, ME, tree),
    trusted: findForbiddenEnv(envs, asker, 'trust'),
  };
}

test('no scope is ever read that is not meant for the minion', () => {
  fc.assert(
    fc.property(someForest, someRequest, (forest, pillarenv) => {
      const { envs, forbidden, scopes } = ask(forest, pillarenv);
      const meant = meantFor(forest);
      assert.equal(
        forbidden === undefined,
        envs.every((env) => meant.has(env)),
        `forbidden: ${forbidden}`,
      );
      if (forbidden !== undefined) return;
      for (const scope of scopes) assert.ok(meant.has(scope) || scope === OWN_SCOPE, scope);
      assert.equal(scopes.includes(OWN_SCOPE), envs.includes('base'));
    }),
    { numRuns: 5000 },
  );
});

test('auto is base and the collections of the minion, and always allowed', () => {
  fc.assert(
    fc.property(someForest, (forest) => {
      const { envs, forbidden } = ask(forest, 'auto');
      assert.equal(forbidden, undefined);
      const own = forest.member.map((id) => forest.collections.find((c) => c.id === id));
      assert.deepEqual(envs, ['base', ...own.map((c) => `collection:${c?.id};user:${c?.owner}`)]);
    }),
  );
});

test('trust allows whatever is asked for', () => {
  fc.assert(
    fc.property(someForest, someRequest, (forest, pillarenv) => ask(forest, pillarenv).trusted === undefined),
  );
});

test('the scope of another minion, of a task, of another tree is forbidden', () => {
  const forest: Forest = {
    collections: [
      { id: 'eu', name: 'eu', parentId: undefined, owner: 'ann', tick: 1 },
      { id: 'web', name: 'web', parentId: 'eu', owner: 'ann', tick: 1 },
      { id: 'db', name: 'db', parentId: 'eu', owner: 'ann', tick: 1 },
    ],
    member: ['web'],
    envs: ['prod'],
  };
  const allowed = [
    'base',
    'prod',
    'collection:web',
    'collection:eu;user:ann',
    'base,collection:web;user:ann',
  ];
  for (const env of allowed) assert.equal(ask(forest, env).forbidden, undefined, env);
  const refused = [
    ...['minion_id:db-1;master:m1', OWN_SCOPE, 'task:t1', 'task_tpl:t1;user:ann', 'staging'],
    ...['collection:db;user:ann', 'collection:web;user:bob', 'collection:zz', 'base,', 'base, prod'],
  ];
  for (const env of refused) assert.notEqual(ask(forest, env).forbidden, undefined, env);
});

test("a task is a minion's only while it lives, and only when it is for that minion", () => {
  const collection = (id: string, parentId?: string) => ({ id, name: id, parentId, owner: 'ann', tick: 1 });
  const collections = [
    collection('eu'),
    collection('web', 'eu'),
    collection('low', 'web'),
    collection('db', 'eu'),
  ];
  const forest: Forest = { collections, member: ['web'], envs: [] };
  const task = (more: Partial<TaskRecord>): TaskRecord => ({
    ...{
      id: 't',
      templateId: 'p',
      state: 'created',
      minions: [],
      collections: [],
      createdBy: 'ann',
      updatedBy: 'ann',
    },
    ...{ createdAtMs: 1, updatedAtMs: 1, expiresAtMs: undefined, endedAtMs: undefined, tick: 1, ...more },
  });
  const allowed = (more: Partial<TaskRecord>) =>
    ask(forest, 'base,task:t', { t: task(more) }).forbidden === undefined;
  const mine = { minions: [{ master: 'm1', id: 'web-1' }] };
  for (const state of TASK_STATES)
    assert.equal(allowed({ ...mine, state }), ['created', 'running'].includes(state), state);
  assert.deepEqual(
    [1001, 1000, 999].map((expiresAtMs) => allowed({ ...mine, expiresAtMs })),
    [true, false, false],
  );
  for (const minion of [
    { master: 'm2', id: 'web-1' },
    { master: 'm1', id: 'web-2' },
  ]) {
    assert.equal(allowed({ minions: [minion] }), false);
  }
  const inCollections = ['eu', 'web', 'low', 'db', 'gone'].map((id) => allowed({ collections: [id] }));
  assert.deepEqual(inCollections, [true, true, false, false, false]);
  assert.notEqual(ask(forest, 'task:t').forbidden, undefined, 'one that does not exist');
  const all = { t: task(mine) };
  for (const env of ['task:t;user:ann', 'task:', 'task_tpl:t;user:ann', 'task_tpl:t']) {
    assert.notEqual(ask(forest, env, all).forbidden, undefined, env);
  }
});
