import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDenialLimit } from './denial-limit.ts';

test('each address has its share of every minute', () => {
  let nowMs = 5;
  const limit = createDenialLimit(2, () => nowMs);
  const tries = (address: string, count: number) => Array.from({ length: count }, () => limit.allow(address));
  assert.deepEqual(tries('a', 3), [true, true, false]);
  assert.deepEqual(tries('b', 3), [true, true, false]);
  nowMs += 59_999;
  assert.deepEqual(tries('a', 1), [false]);
  nowMs += 1;
  assert.deepEqual(tries('a', 3), [true, true, false]);
});

test('no number of addresses makes it grow for ever', () => {
  const limit = createDenialLimit(1, () => 0);
  for (let i = 0; i < 10_000; i += 1) assert.ok(limit.allow(`address ${i}`));
  assert.deepEqual([limit.allow('one more'), limit.allow('and another')], [true, false]);
});
