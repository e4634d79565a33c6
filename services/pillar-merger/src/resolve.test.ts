import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColonnadeError, LIMITS } from '@colonnade/contracts';
import { createCollectionTree } from './collection-tree.ts';
import { resolveEnvs, scopesToRead } from './resolve.ts';

const minion = { master: 'm1', id: 'web-1', collections: ['web', 'eu'], registeredBy: 't', tick: 1 };
const tree = createCollectionTree([
  { id: 'eu', name: 'eu', parentId: undefined, owner: 'ann', tick: 1 },
  { id: 'web', name: 'web', parentId: 'eu', owner: 'ann', tick: 1 },
]);

test('a request is split at commas and nothing else', () => {
  assert.deepEqual(resolveEnvs('base, prod,,base', minion, tree), ['base', ' prod', '', 'base']);
  assert.deepEqual(resolveEnvs('auto,prod', minion, tree), ['auto', 'prod']);
});

test('too many environments are refused, except the ones auto stands for', () => {
  const many = new Array(LIMITS.envsPerRequest + 1).fill('base').join(',');
  assert.throws(
    () => resolveEnvs(many, minion, tree),
    (thrown) => thrown instanceof ColonnadeError && thrown.code === 'bad_request',
  );
});

test('a branch is read root first, the environment itself after it, the minion last when base is asked for', () => {
  assert.deepEqual(scopesToRead(['base', 'collection:web;user:ann'], minion, tree), [
    'base',
    'collection:eu;user:ann',
    'collection:web;user:ann',
    'minion_id:web-1;master:m1',
  ]);
  assert.deepEqual(scopesToRead(['collection:web'], minion, tree), ['collection:eu', 'collection:web']);
});

test('a broken tree is a fault and never a shorter branch', () => {
  const cyclic = createCollectionTree([
    { id: 'a', name: 'a', parentId: 'b', owner: 'ann', tick: 1 },
    { id: 'b', name: 'b', parentId: 'a', owner: 'ann', tick: 1 },
  ]);
  const orphan = createCollectionTree([{ id: 'a', name: 'a', parentId: 'gone', owner: 'ann', tick: 1 }]);
  for (const broken of [cyclic, orphan]) {
    assert.throws(
      () => broken.branch('a'),
      (thrown) => thrown instanceof ColonnadeError && thrown.code === 'internal',
    );
  }
});
