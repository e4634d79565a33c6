import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ValueError, type ValueErrorCode } from './errors.ts';
import { parseValue } from './parse.ts';
import type { Limits } from './value.ts';

/** A text, the code it is refused with, and where: offset, line, column. */
type Refusal = [text: string, code: ValueErrorCode, offset: number, line: number, column: number];

const SYNTAX: Refusal[] = [
  ['', 'syntax', 0, 1, 1],
  ['  \n ', 'syntax', 4, 2, 2],
  ['\ufeff{}', 'syntax', 0, 1, 1],
  ['{', 'syntax', 1, 1, 2],
  ['[1', 'syntax', 2, 1, 3],
  ['[1,]', 'syntax', 3, 1, 4],
  ['[,1]', 'syntax', 1, 1, 2],
  ['[1 2]', 'syntax', 3, 1, 4],
  ['{"a":1,}', 'syntax', 7, 1, 8],
  ['{"a"}', 'syntax', 4, 1, 5],
  ['{"a" 1}', 'syntax', 5, 1, 6],
  ['{a:1}', 'syntax', 1, 1, 2],
  ["{'a':1}", 'syntax', 1, 1, 2],
  ['{"a":1]', 'syntax', 6, 1, 7],
  ['[1}', 'syntax', 2, 1, 3],
  [']', 'syntax', 0, 1, 1],
  ['1 2', 'syntax', 2, 1, 3],
  ['{} {}', 'syntax', 3, 1, 4],
  ['{"a":\r\n  tru}', 'syntax', 9, 2, 3],
  ['True', 'syntax', 0, 1, 1],
  ['nul', 'syntax', 0, 1, 1],
  ['nulll', 'syntax', 4, 1, 5],
  ['NaN', 'syntax', 0, 1, 1],
  ['Infinity', 'syntax', 0, 1, 1],
  ['-Infinity', 'syntax', 1, 1, 2],
  ['undefined', 'syntax', 0, 1, 1],
  ['\u00a01', 'syntax', 0, 1, 1],
  ['1\v', 'syntax', 1, 1, 2],
  ['// c\n1', 'syntax', 0, 1, 1],
  ['"abc', 'syntax', 4, 1, 5],
  ['"a\\', 'syntax', 2, 1, 3],
  ['"a\\"', 'syntax', 4, 1, 5],
  ['"\\x41"', 'syntax', 1, 1, 2],
  ['"\\u12g4"', 'syntax', 1, 1, 2],
  ['"\\u 123"', 'syntax', 1, 1, 2],
  ['"\\u12"', 'syntax', 1, 1, 2],
  ['"a\tb"', 'syntax', 2, 1, 3],
  ['"a\nb"', 'syntax', 2, 1, 3],
  ['"\\n\0"', 'syntax', 3, 1, 4],
  ['"😀😀\n"', 'syntax', 5, 1, 4],
  ['01', 'syntax', 0, 1, 1],
  ['-01', 'syntax', 1, 1, 2],
  ['[00]', 'syntax', 1, 1, 2],
  ['-', 'syntax', 1, 1, 2],
  ['+1', 'syntax', 0, 1, 1],
  ['.5', 'syntax', 0, 1, 1],
  ['1.', 'syntax', 2, 1, 3],
  ['1.e5', 'syntax', 2, 1, 3],
  ['1e', 'syntax', 2, 1, 3],
  ['1e+', 'syntax', 3, 1, 4],
  ['0x1F', 'syntax', 1, 1, 2],
  ['1_000', 'syntax', 1, 1, 2],
  ['1n', 'syntax', 1, 1, 2],
];

const MEANING: Refusal[] = [
  ['{"a":1,"a":2}', 'duplicate_key', 7, 1, 8],
  ['{"a":null,\n"\\u0061":2}', 'duplicate_key', 11, 2, 1],
  ['{"__proto__":1,"__proto__":2}', 'duplicate_key', 15, 1, 16],
  ['[{"b":{"":1,"":1}}]', 'duplicate_key', 12, 1, 13],
  ['9223372036854775808', 'number_range', 0, 1, 1],
  ['[-9223372036854775809]', 'number_range', 1, 1, 2],
  [`[1,${'9'.repeat(5000)}]`, 'number_range', 3, 1, 4],
  ['1e309', 'number_range', 0, 1, 1],
  [' -1.8e308', 'number_range', 1, 1, 2],
  [`${'9'.repeat(400)}.0`, 'number_range', 0, 1, 1],
  ['"\\ud800"', 'lone_surrogate', 1, 1, 2],
  ['"x\\ud800\\u0041"', 'lone_surrogate', 2, 1, 3],
  ['"\\ud800\\ud800"', 'lone_surrogate', 1, 1, 2],
  ['"\\udc00\\ud800"', 'lone_surrogate', 1, 1, 2],
  ['"\\udfff"', 'lone_surrogate', 1, 1, 2],
  ['{"\\udead":1}', 'lone_surrogate', 2, 1, 3],
  ['\n"a\ud800"', 'lone_surrogate', 3, 2, 3],
  ['"😀\udc00"', 'lone_surrogate', 3, 1, 3],
  ['"\ud800\\udc00"', 'lone_surrogate', 1, 1, 2],
  [`${'['.repeat(65)}${']'.repeat(65)}`, 'too_deep', 64, 1, 65],
  [`${'{"a":'.repeat(64)}[]${'}'.repeat(64)}`, 'too_deep', 320, 1, 321],
  ['['.repeat(1_000_000), 'too_deep', 64, 1, 65],
];

describe('parseValue', () => {
  for (const [text, code, offset, line, column] of [...SYNTAX, ...MEANING]) {
    test(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => {
      const expected = { name: 'ValueError', code, offset, line, column };
      assert.throws(() => parseValue(text), expected);
    });
  }

  const bytes: [name: string, bytes: number[], offset: number, column: number][] = [
    ['a byte that never occurs', [0x22, 0xc3, 0xa9, 0xff, 0x22], 2, 3],
    ['an overlong form', [0x22, 0xc0, 0x80, 0x22], 1, 2],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22], 1, 2],
    ['past U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22], 1, 2],
    ['a character cut off', [0x22, 0xf0, 0x9f, 0x98], 1, 2],
    ['after an astral character', [0x22, 0xf0, 0x9f, 0x98, 0x80, 0x80], 3, 3],
  ];
  for (const [name, input, offset, column] of bytes) {
    test(`refuses invalid UTF-8: ${name}`, () => {
      const expected = { code: 'invalid_utf8', offset, line: 1, column };
      assert.throws(() => parseValue(Uint8Array.from(input)), expected);
    });
  }

  test('refuses a byte order mark in bytes', () => {
    assert.throws(() => parseValue(Uint8Array.from([0xef, 0xbb, 0xbf, 0x31])), { code: 'syntax', offset: 0 });
  });

  const accepted: [text: string, value: unknown][] = [
    ['0', 0n],
    ['-0', 0n],
    ['-7', -7n],
    ['999999999999999', 999999999999999n],
    ['1000000000000000', 1000000000000000n],
    ['9007199254740993', 9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['1.0', 1],
    ['-0.0', -0],
    ['1e5', 100000],
    ['1E+2', 100],
    ['0e0', 0],
    ['1e-400', 0],
    ['123456789012345678.0', 123456789012345680],
    [' \t\r\n"" ', ''],
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00"', '"\\/\b\f\n\r\té😀'],
    ['"\x7f\u2028\u2029\u{10ffff}"', '\x7f\u2028\u2029\u{10ffff}'],
    ['[null,true,false,[]]', [null, true, false, []]],
  ];
  for (const [text, value] of accepted) {
    test(`reads ${JSON.stringify(text)}`, () => {
      assert.deepStrictEqual(parseValue(text), value);
      assert.deepStrictEqual(parseValue(new TextEncoder().encode(text)), value);
    });
  }

  test('makes objects without a prototype, and __proto__ a key', () => {
    const value = parseValue('{"__proto__":{"a":1},"constructor":2}') as Record<string, unknown>;
    assert.equal(Object.getPrototypeOf(value), null);
    assert.deepEqual(Object.keys(value), ['__proto__', 'constructor']);
    assert.equal(value.a, undefined);
  });

  const limits: [text: string, limits: Limits, code: ValueErrorCode | undefined][] = [
    ['[[1]]', { maxDepth: 2 }, undefined],
    ['[[[]]]', { maxDepth: 2 }, 'too_deep'],
    ['1', { maxDepth: 0 }, undefined],
    ['{}', { maxDepth: 0 }, 'too_deep'],
    ['[[],[]]', { maxDepth: 2 }, undefined],
    [`${'['.repeat(512)}${']'.repeat(512)}`, { maxDepth: 100_000 }, undefined],
    [`${'['.repeat(513)}${']'.repeat(513)}`, { maxDepth: 100_000 }, 'too_deep'],
    ['"abc"', { maxBytes: 5 }, undefined],
    ['"abc" ', { maxBytes: 5 }, 'too_large'],
    ['"éé"', { maxBytes: 6 }, undefined],
    ['"éé"', { maxBytes: 5 }, 'too_large'],
    ['"😀"', { maxBytes: 6 }, undefined],
    ['"😀"', { maxBytes: 5 }, 'too_large'],
    ['"€€€€€"', { maxBytes: 17 }, undefined],
    ['"€€€€€"', { maxBytes: 16 }, 'too_large'],
  ];
  for (const [text, limit, code] of limits) {
    test(`${code ?? 'accepts'}: ${text.slice(0, 20)} (${text.length}) within ${JSON.stringify(limit)}`, () => {
      for (const input of [text, new TextEncoder().encode(text)]) {
        if (code === undefined) parseValue(input, limit);
        else assert.throws(() => parseValue(input, limit), { name: 'ValueError', code });
      }
    });
  }

  test('an error never holds the text', () => {
    for (const text of ['{"password":hunter2}', '{"hunter2":1,"hunter2":2}', '"hunter2', '"hunter2\\q"']) {
      assert.throws(
        () => parseValue(text),
        (error) => error instanceof ValueError && !JSON.stringify([error.message, error]).includes('hunter2'),
      );
    }
  });
});
