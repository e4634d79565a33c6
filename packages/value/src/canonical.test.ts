import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { canonicalBytes, canonicalText } from './canonical.ts';
import type { ValueErrorCode } from './errors.ts';
import type { Value } from './value.ts';

// Every text on the right is what Python 3.11's json.dumps wrote.
const TEXTS: [value: Value, text: string][] = [
  [null, 'null'],
  [true, 'true'],
  [1n, '1'],
  [-9223372036854775808n, '-9223372036854775808'],
  [1, '1.0'],
  [0, '0.0'],
  [-0, '-0.0'],
  [0.1, '0.1'],
  [1e15, '1000000000000000.0'],
  [123456789012345, '123456789012345.0'],
  [9999999999999998, '9999999999999998.0'],
  [1e16, '1e+16'],
  [-1.5e16, '-1.5e+16'],
  [1.2345678901234567e19, '1.2345678901234567e+19'],
  [1e21, '1e+21'],
  [1e22, '1e+22'],
  [1.5e300, '1.5e+300'],
  [1.7976931348623157e308, '1.7976931348623157e+308'],
  [0.0001, '0.0001'],
  [0.00012, '0.00012'],
  [0.00001, '1e-05'],
  [-0.000012, '-1.2e-05'],
  [1e-7, '1e-07'],
  [1e-10, '1e-10'],
  [5e-324, '5e-324'],
  ['', '""'],
  ['"\\/', '"\\"\\\\/"'],
  ['\b\f\n\r\t', '"\\b\\f\\n\\r\\t"'],
  ['\0\v\x1b\x1f', '"\\u0000\\u000b\\u001b\\u001f"'],
  ['\x7f\x80\u2028\u2029\ufeff\uffff', '"\x7f\x80\u2028\u2029\ufeff\uffff"'],
  ['é😀', '"é😀"'],
  [[], '[]'],
  [{}, '{}'],
  [[1n, [2], 'x'], '[1,[2.0],"x"]'],
  [{ b: 1n, a: { d: null, c: [] }, B: 2n }, '{"B":2,"a":{"c":[],"d":null},"b":1}'],
  // By code point U+E000 and U+FFFF come before U+1F600, by UTF-16 unit after it.
  [
    { '😀': 1n, '\uffff': 2n, '\ue000': 3n, é: 4n, '\ud7ff': 5n },
    '{"é":4,"\ud7ff":5,"\ue000":3,"\uffff":2,"😀":1}',
  ],
  [{ '😀b': 1n, '😀': 2n, '😀a': 3n, '😁': 4n }, '{"😀":2,"😀a":3,"😀b":1,"😁":4}'],
  [{ 10: 1n, 9: 2n, '': 3n, '1': 4n }, '{"":3,"1":4,"10":1,"9":2}'],
];

class Instance {
  readonly a = 1n;
}

const cycle: unknown[] = [];
cycle.push([{ cycle }]);

const REFUSED: [name: string, x: unknown, code: ValueErrorCode][] = [
  ['NaN', Number.NaN, 'number_range'],
  ['an infinity', [Number.NEGATIVE_INFINITY], 'number_range'],
  ['2^63', { a: 2n ** 63n }, 'number_range'],
  ['below -2^63', -(2n ** 63n) - 1n, 'number_range'],
  ['a lone surrogate', 'a\ud800', 'lone_surrogate'],
  ['a lone low surrogate', ['\udc00\ud800'], 'lone_surrogate'],
  ['a lone surrogate in a key', { '\ud800': 1n }, 'lone_surrogate'],
  ['undefined', undefined, 'not_a_value'],
  ['an undefined member', { a: undefined }, 'not_a_value'],
  // biome-ignore lint/suspicious/noSparseArray: a hole is what is refused
  ['a hole', [1n, , 2n], 'not_a_value'],
  ['a function', { toJSON: () => 1n }, 'not_a_value'],
  ['a symbol', Symbol('a'), 'not_a_value'],
  ['a symbol key', { [Symbol('a')]: 1n }, 'not_a_value'],
  ['an instance', new Instance(), 'not_a_value'],
  ['a date', new Date(0), 'not_a_value'],
  ['a map', new Map(), 'not_a_value'],
  ['bytes', new Uint8Array(2), 'not_a_value'],
  ['a boxed text', Object('text'), 'not_a_value'],
  ['a cycle', cycle, 'too_deep'],
];

describe('canonicalText', () => {
  for (const [value, text] of TEXTS) {
    test(`writes ${JSON.stringify(text)}`, () => {
      assert.equal(canonicalText(value), text);
      assert.deepEqual(Buffer.from(canonicalBytes(value)), Buffer.from(text, 'utf8'));
    });
  }

  for (const [name, x, code] of REFUSED) {
    test(`refuses ${name}`, () => {
      assert.throws(() => canonicalText(x as Value), { name: 'ValueError', code, offset: undefined });
    });
  }

  test('stops at the ceiling of depth and not before', () => {
    let value: Value = [];
    for (let depth = 1; depth < 512; depth++) value = depth % 2 === 0 ? [value] : { a: value };
    assert.ok(canonicalText(value).length > 512);
    assert.throws(() => canonicalText([value]), { code: 'too_deep' });
  });

  test('leaves the order of the keys in the value alone', () => {
    const value = { b: 1n, a: 2n };
    canonicalText(value);
    assert.deepEqual(Object.keys(value), ['b', 'a']);
  });
});
