import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRates } from './rates.ts';

function setUp(perMinute: number, burst: number) {
  const clock = { nowMs: 1000 };
  const rates = createRates({ perMinute, burst, nowMs: () => clock.nowMs });
  const take = (key: string, count: number) => Array.from({ length: count }, () => rates.take(key).allowed);
  return { clock, rates, take };
}

test('each caller has a burst, and then what comes back in time', () => {
  const { clock, rates, take } = setUp(60, 3);
  assert.deepEqual(take('a', 4), [true, true, true, false]);
  assert.deepEqual(take('b', 1), [true]);
  assert.deepEqual(rates.take('a'), { allowed: false, limit: 3, remaining: 0, resetS: 1 });
  clock.nowMs += 999;
  assert.deepEqual(take('a', 1), [false]);
  clock.nowMs += 1;
  assert.deepEqual(take('a', 2), [true, false]);
  clock.nowMs += 60 * 60_000;
  assert.deepEqual(rates.take('a'), { allowed: true, limit: 3, remaining: 2, resetS: 1 });
});

test('no number of callers makes it grow for ever, and who asks all the time is not forgotten', () => {
  const { rates, take } = setUp(1, 2);
  take('steady', 2);
  for (let i = 0; i < 25_000; i += 1) {
    rates.take(`caller ${i}`);
    if (i % 100 === 0) assert.equal(rates.take('steady').allowed, false);
  }
});
