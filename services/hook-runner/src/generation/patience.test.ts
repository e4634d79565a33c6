import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPatience, retryInMs } from './patience.ts';

test('each failure for the same reason waits twice as long, up to ten minutes; another reason begins anew', () => {
  const patience = createPatience(() => 0);
  const pauses = Array.from({ length: 9 }, () => patience.failed('unavailable', 5000).atMostMs / 1000);
  assert.deepEqual(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
  assert.equal(patience.failed('10-check: exit code 4', 60_000).atMostMs, 60_000);
  assert.equal(patience.failed('unavailable', 5000).atMostMs, 5000);
  patience.forget();
  assert.equal(patience.failed('unavailable', 5000).failures, 1);
});

test('a change brings the next one at once after one failure, later and later after more, never after a minute', () => {
  const patience = createPatience(() => 1);
  const least = Array.from({ length: 8 }, () => patience.failed('unavailable', 5000).atLeastMs / 1000);
  assert.deepEqual(least, [0, 5, 10, 20, 40, 60, 60, 60]);
  assert.equal(createPatience(() => 1).failed('x', 5000).atMostMs, 6000);
});

test('minions that fail wait twice as long each time, up to ten minutes, and a fifth more by chance', () => {
  const seconds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 100].map((tries) => retryInMs(tries, 0) / 1000);
  assert.deepEqual(seconds, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
  assert.equal(retryInMs(1, 1), 6000);
});
