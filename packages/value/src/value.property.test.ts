import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { arbitraryValue } from '../test/arbitrary-value.ts';
import { canonicalBytes, canonicalText } from './canonical.ts';
import { isValue } from './check.ts';
import { valuesEqual } from './equal.ts';
import { ValueError } from './errors.ts';
import { parseValue } from './parse.ts';
import type { Value } from './value.ts';
import { valueFromYaml } from './yaml-read.ts';
import { valueToYaml } from './yaml-write.ts';

const RUNS = { numRuns: 1000 };

test('every value is one', () => {
  fc.assert(
    fc.property(arbitraryValue(), (value) => isValue(value)),
    RUNS,
  );
});

test('parse(canonical(v)) is v, from text and from bytes', () => {
  fc.assert(
    fc.property(arbitraryValue(), (value) => {
      assert.ok(valuesEqual(parseValue(canonicalText(value)), value));
      assert.ok(valuesEqual(parseValue(canonicalBytes(value)), value));
    }),
    RUNS,
  );
});

test('canonical(parse(canonical(v))) is canonical(v)', () => {
  fc.assert(
    fc.property(arbitraryValue(), (value) => {
      const text = canonicalText(value);
      assert.equal(canonicalText(parseValue(text)), text);
    }),
    RUNS,
  );
});

test('two values are equal exactly when their canonical texts are', () => {
  fc.assert(
    fc.property(arbitraryValue(1), arbitraryValue(1), (a, b) => {
      assert.equal(valuesEqual(a, b), canonicalText(a) === canonicalText(b));
    }),
    { numRuns: 3000 },
  );
});

test('YAML keeps every value', () => {
  fc.assert(
    fc.property(arbitraryValue(), (value) => {
      assert.ok(valuesEqual(valueFromYaml(valueToYaml(value)), value));
    }),
    RUNS,
  );
});

test('a damaged text is refused with a place inside it, or is a value', () => {
  const damaged = fc
    .tuple(
      arbitraryValue().map(canonicalText),
      fc.nat(),
      fc.nat({ max: 3 }),
      fc.string({ unit: 'binary', maxLength: 2 }),
    )
    .map(([text, at, cut, put]) => {
      const start = at % (text.length + 1);
      return text.slice(0, start) + put + text.slice(start + cut);
    });
  fc.assert(
    fc.property(damaged, (text) => checkRefusalOrValue(text)),
    { numRuns: 5000 },
  );
});

// JSON.parse is the independent judge of what is JSON at all; we may only be stricter.
function checkRefusalOrValue(text: string): void {
  let value: Value;
  try {
    value = parseValue(text);
  } catch (error) {
    assert.ok(error instanceof ValueError);
    assert.ok(error.offset !== undefined && error.offset >= 0 && error.offset <= text.length);
    if (error.code === 'syntax') assert.throws(() => JSON.parse(text), SyntaxError);
    return;
  }
  assert.doesNotThrow(() => JSON.parse(text));
  assert.equal(canonicalText(parseValue(canonicalText(value))), canonicalText(value));
}
