import assert from 'node:assert/strict';
import { test } from 'node:test';
import { zTimeAsked } from './common.ts';

test('a time is taken as RFC 3339 writes it: fractions or none, any offset', () => {
  const at = '2026-11-30T03:45:00.000Z';
  for (const text of [
    '2026-11-30T03:45:00Z',
    at,
    '2026-11-30T03:45:00.0000001Z',
    '2026-11-30T05:15:00+01:30',
    '2026-11-29T23:45:00-04:00',
  ])
    assert.equal(new Date(Date.parse(zTimeAsked.parse(text))).toISOString(), at, text);
  assert.ok(zTimeAsked.safeParse('2028-02-29T00:00:00Z').success);
});

test('what is no RFC 3339 time, or no day of any calendar, is refused', () => {
  for (const text of [
    ...['2026-02-30T00:00:00Z', '2027-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-00T00:00:00Z'],
    ...['2026-01-01T24:00:00Z', '2026-01-01T00:60:00Z', '2026-01-01T00:00:60Z', '2026-01-01T00:00:00+24:00'],
    ...['2026-01-01', '2026-01-01T00:00:00', '2026-01-01 00:00:00Z', '2026-01-01T00:00Z', 'yesterday', '', 7],
  ])
    assert.ok(!zTimeAsked.safeParse(text).success, String(text));
});
