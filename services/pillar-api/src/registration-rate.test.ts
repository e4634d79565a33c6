import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistrationRate } from './registration-rate.ts';

test('a master may have so many at once and in a minute, and its neighbour as many', () => {
  let now = 0;
  const rate = createRegistrationRate(60, () => now);
  for (let i = 0; i < 60; i++) rate.take('m1');
  assert.throws(() => rate.take('m1'), { code: 'rate_limited' });
  rate.take('m2');
  now += 999;
  assert.throws(() => rate.take('m1'), { code: 'rate_limited' });
  now += 1;
  rate.take('m1');
  assert.throws(() => rate.take('m1'), { code: 'rate_limited' });
  now += 3_600_000;
  for (let i = 0; i < 60; i++) rate.take('m1');
  assert.throws(() => rate.take('m1'), { code: 'rate_limited' });
});
