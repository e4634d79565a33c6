import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitFor } from '../../../../test/support/wait-for.ts';
import { createKeyedQueue } from './queue.ts';

test('one key is worked on once at a time, and once more if asked for meanwhile; keys in their order', async () => {
  const log: string[] = [];
  const gates: (() => void)[] = [];
  const queue = createKeyedQueue(
    async (key) => {
      log.push(`+${key}`);
      await new Promise<void>((resolve) => gates.push(resolve));
      log.push(`-${key}`);
    },
    { workers: 2 },
  );
  for (const key of ['a', 'b', 'c', 'a', 'a']) queue.add(key);
  assert.deepEqual(log, ['+a', '+b']);
  assert.equal(queue.size(), 3);
  gates.shift()?.();
  await waitFor('c', () => log.includes('+c'));
  assert.deepEqual(log, ['+a', '+b', '-a', '+c']);
  gates.shift()?.();
  await waitFor('a again', () => log.filter((l) => l === '+a').length === 2);
  for (const open of gates) open();
  await waitFor('the end', () => queue.size() === 0);
  assert.equal(log.filter((l) => l === '+a').length, 2);
  await queue[Symbol.asyncDispose]();
});

test('a key for later comes at the earliest of its times, and none after the end', async () => {
  const seen: string[] = [];
  const queue = createKeyedQueue(async (key) => void seen.push(key), { workers: 1 });
  queue.addAfter('a', 60_000);
  queue.addAfter('a', 1);
  await waitFor('a', () => seen.length === 1);
  queue.addAfter('b', 60_000);
  await queue[Symbol.asyncDispose]();
  // A timer of a minute would keep this test from ending.
  queue.addAfter('c', 60_000);
  assert.deepEqual(seen, ['a']);
});
