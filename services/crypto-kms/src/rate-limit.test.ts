import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRateLimit } from './rate-limit.ts';

test('a second holds what it holds, per key, and fills again with time', () => {
  let now = 0;
  const limit = createRateLimit(1000, () => now);
  assert.ok(limit.take('a', 600));
  assert.ok(!limit.take('a', 500));
  assert.ok(limit.take('a', 400));
  assert.ok(!limit.take('a', 1));
  assert.ok(limit.take('b', 1000));
  now += 100;
  assert.ok(!limit.take('a', 101));
  assert.ok(limit.take('a', 100));
  now += 1_000_000;
  assert.ok(limit.take('a', 1000));
  assert.ok(!limit.take('a', 1));
});

test('remembers a bounded number of keys, the busy ones longest', () => {
  const limit = createRateLimit(1, () => 0);
  assert.ok(limit.take('busy', 1));
  for (let i = 0; i < 30_000; i += 1) {
    limit.take(`k${i}`, 1);
    if (i % 5000 === 0) assert.ok(!limit.take('busy', 1));
  }
  assert.ok(limit.take('k0', 1));
});
