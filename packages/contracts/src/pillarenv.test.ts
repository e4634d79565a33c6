import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  collectionEnv,
  collectionTarget,
  dekWrapAad,
  minionTarget,
  parseEnv,
  pillarAad,
  rootTarget,
  taskEnv,
  taskTemplateEnv,
} from './pillarenv.ts';

test('the canonical forms are those of seed 000', () => {
  assert.equal(rootTarget.pillarenv, 'base');
  assert.equal(minionTarget('web-1', 'm1').pillarenv, 'minion_id:web-1;master:m1');
  assert.equal(collectionTarget('c1', 'alice').pillarenv, 'collection:c1;user:alice');
  assert.equal(collectionEnv('c1'), 'collection:c1');
  assert.equal(taskEnv('t1'), 'task:t1');
  assert.equal(taskTemplateEnv('t1', 'alice'), 'task_tpl:t1;user:alice');
});

test('the AADs are those of seed 000', () => {
  const aad = pillarAad({ ...minionTarget('web-1', 'm1'), name: 'key' });
  assert.equal(aad, 'minion:web-1:minion_id:web-1;master:m1:key');
  assert.equal(dekWrapAad('core-kek-v1', aad), `pillars-dek:core-kek-v1:${aad}`);
});

test('an environment is read back as it was built, and nothing else passes for it', () => {
  assert.deepEqual(parseEnv('base'), { kind: 'plain', name: 'base' });
  assert.deepEqual(parseEnv('collection:c1;user:alice'), {
    kind: 'collection',
    collectionId: 'c1',
    userSub: 'alice',
  });
  assert.deepEqual(parseEnv('collection:c1'), { kind: 'collection', collectionId: 'c1', userSub: undefined });
  assert.deepEqual(parseEnv('task:t1'), { kind: 'task', taskId: 't1' });
  assert.deepEqual(parseEnv('minion_id:a;master:b'), { kind: 'minion', minionId: 'a', master: 'b' });
  const others = [
    '',
    'collection:',
    'collection:a;user:',
    'collection:a:b',
    'task:',
    'task:a;b',
    'minion_id:a',
    'x:y',
    'a;b',
    'collection:a;user:b;c',
  ];
  for (const odd of others) assert.deepEqual(parseEnv(odd), { kind: 'other' }, odd);
});
