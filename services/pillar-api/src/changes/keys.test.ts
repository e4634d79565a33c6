import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectionEnv, minionEnv, taskEnv, taskTemplateEnv } from '@colonnade/contracts';
import { subjectOfKey } from './keys.ts';

test('a key says whose it is, and what nobody understands is for readers of all', () => {
  const root = { tgtType: 'root', tgtId: 'root' };
  assert.deepEqual(subjectOfKey('scope:base'), root);
  assert.deepEqual(subjectOfKey(`scope:${collectionEnv('web', 'ann')}`), {
    tgtType: 'collection',
    tgtId: 'web',
  });
  assert.deepEqual(subjectOfKey(`scope:${minionEnv('web-1', 'm1')}`), { tgtType: 'minion', tgtId: 'web-1' });
  assert.deepEqual(subjectOfKey(`scope:${taskEnv('t1')}`), { tgtType: 'task', tgtId: 't1' });
  assert.deepEqual(subjectOfKey('minion:m1/web-1'), { tgtType: 'minion', tgtId: 'web-1' });
  assert.deepEqual(subjectOfKey('task:t1'), { tgtType: 'task', tgtId: 't1' });
  assert.equal(subjectOfKey('collections'), 'tree');
  for (const key of ['master:m1', `scope:${taskTemplateEnv('t', 'ann')}`, 'scope:odd;thing'] as const) {
    assert.equal(subjectOfKey(key), 'estate', key);
  }
});
