import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFairQueue } from './fair-queue.ts';

test('callers take turns, and each is answered in his own order', () => {
  const queue = createFairQueue<string>();
  queue.add('mallory', 'm1');
  assert.equal(queue.take(), 'm1');
  for (const n of [2, 3]) queue.add('mallory', `m${n}`);
  queue.add('alice', 'a1');
  queue.add('bob', 'b1');
  queue.add('alice', 'a2');
  const rest = Array.from({ length: 6 }, () => queue.take());
  assert.deepEqual(rest, ['a1', 'b1', 'm2', 'a2', 'm3', undefined]);
});

test('what waits no longer leaves its place to the next', () => {
  const queue = createFairQueue<string>();
  queue.add('alice', 'a1');
  queue.add('alice', 'a2');
  queue.add('bob', 'b1');
  queue.remove('alice', 'a1');
  queue.remove('alice', 'absent');
  assert.deepEqual([queue.length, queue.lengthOf('alice')], [2, 1]);
  queue.remove('alice', 'a2');
  assert.deepEqual([queue.take(), queue.take(), queue.length], ['b1', undefined, 0]);
});
