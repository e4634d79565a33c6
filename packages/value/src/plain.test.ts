import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { canonicalText } from './canonical.ts';
import { valuesEqual } from './equal.ts';
import { parseValue } from './parse.ts';
import { fromPlain, toPlain } from './plain.ts';
import type { Value } from './value.ts';

describe('fromPlain', () => {
  const cases: [x: unknown, text: string][] = [
    [1, '1'],
    [-0, '0'],
    [2 ** 53 - 1, '9007199254740991'],
    [2 ** 53, '9007199254740992.0'],
    [1.5, '1.5'],
    [1e300, '1e+300'],
    [7n, '7'],
    [{ a: [1, { b: null }] }, '{"a":[1,{"b":null}]}'],
    [JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
  ];
  for (const [x, text] of cases) {
    test(`makes ${text}`, () => assert.equal(canonicalText(fromPlain(x)), text));
  }

  const refused: unknown[] = [undefined, { a: undefined }, new Array(2), Number.NaN, 2n ** 63n, '\ud800'];
  for (const x of [...refused, { '\ud800': 1 }, new Date(0), () => 1, new Map()]) {
    test(`refuses ${typeof x} ${String(x)}`, () => assert.throws(() => fromPlain(x), { name: 'ValueError' }));
  }

  test('copies', () => {
    const inner = [1];
    const value = fromPlain({ inner }) as { inner: Value[] };
    inner.push(2);
    assert.deepEqual(value.inner, [1n]);
    assert.equal(Object.getPrototypeOf(value), null);
  });
});

describe('toPlain', () => {
  test('makes ordinary data', () => {
    const value = parseValue('{"a":1,"b":9007199254740993,"c":[-9007199254740992,1.0,"x"],"d":null}');
    const plain = { a: 1, b: '9007199254740993', c: ['-9007199254740992', 1, 'x'], d: null };
    assert.deepStrictEqual(toPlain(value), plain);
  });

  test('keeps __proto__ a key', () => {
    const plain = toPlain(parseValue('{"__proto__":{"admin":true}}')) as Record<string, unknown>;
    assert.equal(plain.admin, undefined);
    assert.equal(JSON.stringify(plain), '{"__proto__":{"admin":true}}');
  });
});

describe('valuesEqual', () => {
  const pairs: [a: string, b: string, equal: boolean][] = [
    ['1', '1', true],
    ['1', '1.0', false],
    ['0.0', '-0.0', false],
    ['9007199254740993', '9007199254740992', false],
    ['"1"', '1', false],
    ['null', '{}', false],
    ['[]', '{}', false],
    ['{"a":1,"b":2}', '{"b":2,"a":1}', true],
    ['{"a":1}', '{"a":1,"b":2}', false],
    ['{"a":1,"c":2}', '{"a":1,"b":2}', false],
    ['{"__proto__":1}', '{"a":1}', false],
    ['[1,2]', '[2,1]', false],
    ['[1]', '[1,1]', false],
    ['[[{"a":[]}]]', '[[{"a":[]}]]', true],
  ];
  for (const [a, b, equal] of pairs) {
    test(`${a} ${equal ? '=' : '≠'} ${b}`, () => {
      assert.equal(valuesEqual(parseValue(a), parseValue(b)), equal);
      assert.equal(valuesEqual(parseValue(b), parseValue(a)), equal);
    });
  }

  test('does not mind prototypes', () => {
    assert.equal(valuesEqual({ a: 1n }, parseValue('{"a":1}')), true);
  });
});
