import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDenialLimit, type Suppressed } from './denial-limit.ts';

function setUp(perMinute: number) {
  const clock = { nowMs: 5 };
  const reports: Suppressed[] = [];
  const report = (suppressed: Suppressed) => void reports.push(suppressed);
  const limit = createDenialLimit({ perMinute, report, nowMs: () => clock.nowMs });
  const tries = (source: string, count: number) => Array.from({ length: count }, () => limit.count(source));
  return { clock, reports, limit, tries };
}

test('each source has its share of every minute, and is told how long the rest of it is', async () => {
  const { clock, limit, tries } = setUp(2);
  assert.deepEqual(tries('a', 3), [undefined, undefined, 60]);
  clock.nowMs += 40_500;
  assert.deepEqual(tries('b', 3), [undefined, undefined, 20]);
  clock.nowMs += 19_499;
  assert.deepEqual(tries('a', 1), [1]);
  clock.nowMs += 1;
  assert.deepEqual(tries('a', 3), [undefined, undefined, 60]);
  await limit[Symbol.asyncDispose]();
});

test('what was suppressed is told once a minute, and at the end', async () => {
  const { clock, reports, limit, tries } = setUp(2);
  tries('a', 5);
  tries('b', 2);
  tries('c', 3);
  clock.nowMs += 60_000;
  tries('a', 1);
  const first = {
    total: 4,
    sources: new Map([
      ['a', 3],
      ['c', 1],
    ]),
  };
  assert.deepEqual(reports, [first]);
  tries('a', 2);
  await limit[Symbol.asyncDispose]();
  await limit[Symbol.asyncDispose]();
  assert.deepEqual(reports, [first, { total: 1, sources: new Map([['a', 1]]) }]);
});

test('no number of sources makes it grow for ever', async () => {
  const { limit } = setUp(1);
  for (let i = 0; i < 10_000; i += 1) assert.equal(limit.count(`address ${i}`), undefined);
  assert.deepEqual([limit.count('one more'), limit.count('and another')], [undefined, 60]);
  await limit[Symbol.asyncDispose]();
});
