import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '@colonnade/contracts';
import { parseValue, type Value, valuesEqual } from '@colonnade/value';
import fc from 'fast-check';
import { arbitraryValue } from '../../../packages/value/test/arbitrary-value.ts';
import { diffValues } from './diff.ts';

const diff = (before: string, after: string) => diffValues(parseValue(before), parseValue(after));

test('what was added, removed and changed is named by its place', () => {
  assert.deepEqual(diff('{"a":{"b":[1,2,3]},"gone":null,"~/":1}', '{"a":{"b":[1,5]},"new":{},"~/":1.0}'), {
    changes: [
      { path: '/a/b/1', before: 2n, after: 5n },
      { path: '/a/b/2', before: 3n },
      { path: '/gone', before: null },
      { path: '/~0~1', before: 1n, after: 1 },
      { path: '/new', after: parseValue('{}') },
    ],
    more: false,
  });
});

test('another kind is a change of the whole; the same is none', () => {
  assert.deepEqual(diff('[]', '{}').changes, [{ path: '', before: [], after: parseValue('{}') }]);
  assert.deepEqual(diff('"1"', '1').changes, [{ path: '', before: '1', after: 1n }]);
  assert.deepEqual(diff('{"a":1,"b":2}', '{"b":2,"a":1}').changes, []);
  assert.deepEqual(diff('{"__proto__":1}', '{}').changes, [{ path: '/__proto__', before: 1n }]);
});

test('it is cut where it would be too long', () => {
  const zeros: Value = Array.from({ length: 5000 }, () => 0n);
  const many = diffValues([], zeros);
  assert.deepEqual([many.changes.length, many.more], [LIMITS.diffChanges, true]);
  const long = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [String(i), i]));
  const key = 'k'.repeat(200 * 1024);
  const wide = diffValues(
    parseValue(JSON.stringify({ [key]: {} })),
    parseValue(JSON.stringify({ [key]: long })),
  );
  assert.ok(wide.more && wide.changes.length < 10);
});

test('there is a change exactly when the values differ', () => {
  fc.assert(
    fc.property(arbitraryValue(), arbitraryValue(), (a, b) => {
      assert.equal(diffValues(a, b).changes.length > 0, !valuesEqual(a, b));
      assert.deepEqual(diffValues(a, a).changes, []);
    }),
  );
});
