import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createForEach, forEachAtOnce } from './at-once.ts';

test('of all calls together never more are at work than told, and each has its turn', async () => {
  const forEach = createForEach(3);
  let running = 0;
  let most = 0;
  const done: number[] = [];
  const work = async (n: number) => {
    running += 1;
    most = Math.max(most, running);
    await nextTurn();
    running -= 1;
    done.push(n);
  };
  await Promise.all([forEach([1, 2, 3, 4], work), forEach([5, 6, 7, 8, 9], work)]);
  assert.equal(most, 3);
  assert.deepEqual(done, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test('after a fault no further one of its call is begun; those under way end first, and other calls go on', async () => {
  const forEach = createForEach(2);
  const done: string[] = [];
  const faulty = forEach(['a', 'b', 'c'], async (name) => {
    if (name === 'a') throw new Error('a fails');
    await nextTurn();
    done.push(name);
  });
  const other = forEach(['x', 'y'], async (name) => void done.push(name));
  await assert.rejects(faulty, /a fails/u);
  assert.ok(done.includes('b') && !done.includes('c'));
  await other;
  assert.ok(done.includes('x') && done.includes('y'));
  await forEachAtOnce([], 2, async () => assert.fail());
});
