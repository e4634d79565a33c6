import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDuration } from './duration.ts';

const lengths: readonly (readonly [string, number])[] = [
  ['1500 micro', 1.5],
  ['1500micros', 1.5],
  ['7ms', 7],
  ['7 millisecond', 7],
  ['7 milliseconds', 7],
  ['7s', 7000],
  ['7 second', 7000],
  ['7   seconds', 7000],
  ['7m', 420_000],
  ['7 minute', 420_000],
  ['7minutes', 420_000],
  ['7h', 25_200_000],
  ['1 hour', 3_600_000],
  ['1 hours', 3_600_000],
  ['\t007 s ', 7000],
  ['596h', 2_145_600_000],
  // Not in the seed, but in Rudder's parser.
  ['7 microseconds', 0.007],
  ['7 µs', 0.007],
  ['7 millis', 7],
  ['7 sec', 7000],
  ['7min', 420_000],
  ['7hr', 25_200_000],
];

for (const [text, ms] of lengths) {
  test(`${JSON.stringify(text)} is ${ms} ms`, () => assert.equal(parseDuration(text), ms));
}

const none = [
  '',
  's',
  '7',
  '7 S',
  '7 Seconds',
  '-7s',
  '+7s',
  '7.5s',
  '0s',
  '0 h',
  '7 s s',
  '7s # long',
  '٧s',
];
for (const text of [
  ...none,
  '1e3s',
  '0x7s',
  '7 d',
  '597h',
  '999999999999999h',
  '9999999999999999s',
  '7\0s',
]) {
  test(`${JSON.stringify(text)} is none`, () => assert.equal(parseDuration(text), undefined));
}
