import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childTraceparent, remainingMs, startCall, traceIdOf } from './trace.ts';

test('a child stays in its trace; garbage and zeroes start a new one', () => {
  const parent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  assert.equal(traceIdOf(childTraceparent(parent)), 'a'.repeat(32));
  assert.notEqual(childTraceparent(parent), parent);
  for (const bad of [
    undefined,
    '',
    'garbage',
    `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`,
    `00-${'a'.repeat(32)}-${'0'.repeat(16)}-01`,
  ]) {
    const made = childTraceparent(bad);
    assert.match(made, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/u);
    assert.notEqual(traceIdOf(made), 'a'.repeat(32));
  }
});

test('time left counts down to zero', () => {
  assert.ok(remainingMs(startCall(1000)) > 900);
  assert.equal(remainingMs(startCall(-5)), 0);
});

test('no two spans share an id', () => {
  const made = Array.from({ length: 2000 }, () => childTraceparent());
  assert.equal(new Set(made.map((one) => one.split('-')[2])).size, made.length);
  assert.equal(new Set(made.map(traceIdOf)).size, made.length);
});
