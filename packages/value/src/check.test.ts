import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkValue, isValue } from './check.ts';
import type { ValueErrorCode } from './errors.ts';

const REFUSED: [name: string, x: unknown, code: ValueErrorCode][] = [
  ['NaN', [Number.NaN], 'number_range'],
  ['2^63', 2n ** 63n, 'number_range'],
  ['a lone surrogate', { a: ['\udfff'] }, 'lone_surrogate'],
  ['a lone surrogate in a key', { 'x\ud800': 1n }, 'lone_surrogate'],
  ['undefined', [undefined], 'not_a_value'],
  ['a hole', new Array(1), 'not_a_value'],
  ['a function', () => 1, 'not_a_value'],
  ['a symbol key', { [Symbol.iterator]: 1n }, 'not_a_value'],
  ['a regular expression', /a/, 'not_a_value'],
  ['an error', { e: new Error('no') }, 'not_a_value'],
];

describe('checkValue', () => {
  for (const [name, x, code] of REFUSED) {
    test(`refuses ${name}`, () => {
      assert.throws(() => checkValue(x), { name: 'ValueError', code });
      assert.equal(isValue(x), false);
    });
  }

  test('accepts what can be written', () => {
    const shared = [1n];
    for (const x of [null, false, 0n, -0, '', '\ud83d\ude00', [], {}, { a: shared, b: shared }]) {
      checkValue(x);
      assert.equal(isValue(x), true);
    }
  });

  test('counts depth as the parser does', () => {
    assert.equal(isValue([[1n]], { maxDepth: 2 }), true);
    assert.equal(isValue([[{}]], { maxDepth: 2 }), false);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    assert.throws(() => checkValue(cycle), { code: 'too_deep' });
  });

  test('an error that is not about the value passes through', () => {
    const broken = {
      get a(): never {
        throw new TypeError('broken');
      },
    };
    assert.throws(() => isValue(broken), TypeError);
  });
});
