import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoffMs } from './backoff.ts';
import { parseRetryAfter } from './post.ts';
import { createThrottle } from './throttle.ts';

test('pauses grow by half, up to a fifth longer by chance, and stop growing at five minutes', () => {
  const none = () => 0;
  const pauses = [1, 2, 3].map((n) => backoffMs(10_000, n, undefined, none));
  assert.deepEqual(pauses, [10_000, 15_000, 22_500]);
  assert.equal(
    backoffMs(10_000, 1, undefined, () => 1),
    12_000,
  );
  assert.equal(backoffMs(10_000, 1000, undefined, none), 300_000);
  assert.equal(backoffMs(10_000, 1, 60_000, none), 60_000);
  assert.equal(backoffMs(10_000, 1, 1000, none), 10_000);
});

test('Retry-After is seconds or a date, never in the past, never longer than ten minutes', () => {
  const now = Date.parse('2026-01-31T12:00:00Z');
  const cases: [string | undefined, number | undefined][] = [
    [undefined, undefined],
    ['soon', undefined],
    ['0', 0],
    ['7', 7000],
    ['99999', 600_000],
    ['Sat, 31 Jan 2026 12:00:30 GMT', 30_000],
    ['Sat, 31 Jan 2026 11:00:00 GMT', 0],
  ];
  for (const [header, ms] of cases) assert.equal(parseRetryAfter(header, now), ms, header);
});

test('a burst goes at once, the rest at the rate', async () => {
  let now = 0;
  const signal = new AbortController().signal;
  const throttle = createThrottle(100, 3, () => now);
  const started = performance.now();
  for (let i = 0; i < 3; i += 1) await throttle.accept(signal);
  assert.ok(performance.now() - started < 50);
  const waited = performance.now();
  await throttle.accept(signal);
  assert.ok(performance.now() - waited >= 8);
  now = 60_000;
  const rested = performance.now();
  for (let i = 0; i < 3; i += 1) await throttle.accept(signal);
  assert.ok(performance.now() - rested < 50);
});
