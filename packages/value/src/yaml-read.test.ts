import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { canonicalText } from './canonical.ts';
import { ValueError, type ValueErrorCode } from './errors.ts';
import { valueFromYaml } from './yaml-read.ts';

const READ: [yaml: string, canonical: string][] = [
  ['', 'null'],
  ['# only a comment', 'null'],
  ['a:\nb: ~\nc: null', '{"a":null,"b":null,"c":null}'],
  ['[1, 1.0, -0, -0.0, +5, 0x1F]', '[1,1.0,0,-0.0,5,31]'],
  ['[1., .5, 1.0e+16, 1.5e-7]', '[1.0,0.5,1e+16,1.5e-07]'],
  ['9223372036854775807', '9223372036854775807'],
  ['[true, False, TRUE]', '[true,false,true]'],
  ['["yes", \'0644\', "1:30", "2024-01-01", "", "null"]', '["yes","0644","1:30","2024-01-01","","null"]'],
  [
    '[1.2.3, 10.0.0.1, 12:99, a=b, y, n, 1e, v1, ===]',
    '["1.2.3","10.0.0.1","12:99","a=b","y","n","1e","v1","==="]',
  ],
  ['a: |\n  x\n  y\n', '{"a":"x\\ny\\n"}'],
  ['a: |\n  x\n  y', '{"a":"x\\ny"}'],
  ['a: >-\n  x\n  y\n', '{"a":"x y"}'],
  ['"\\ud83d\\ude00 \\u2028 \\x7f"', '"😀 \u2028 \x7f"'],
  ['__proto__: {a: 1}', '{"__proto__":{"a":1}}'],
  ['---\na: 1\n...\n', '{"a":1}'],
  ['? a\n: 1', '{"a":1}'],
  ['"1": x\n"true": y', '{"1":"x","true":"y"}'],
  ['a: &x [1, {b: 2}]\nc: *x', '{"a":[1,{"b":2}],"c":[1,{"b":2}]}'],
  ['- &x 1\n- &y [*x]\n- &x 2\n- *y\n- *x', '[1,[1],2,[1],2]'],
  ['a: 1\r\nb: 2\r\n', '{"a":1,"b":2}'],
];

const REFUSED: [yaml: string, code: ValueErrorCode, line: number, column: number][] = [
  ['a: 1\nb: 2\na: 3', 'duplicate_key', 3, 1],
  ['{a: 1, "a": 2}', 'duplicate_key', 1, 8],
  ['1: x', 'syntax', 1, 1],
  ['true: x', 'syntax', 1, 1],
  ['~: x', 'syntax', 1, 1],
  [': x', 'syntax', 1, 1],
  ['? [a]\n: b', 'syntax', 1, 3],
  ['on: push', 'syntax', 1, 1],
  ['a: &a [*a]', 'syntax', 1, 8],
  ['a: *b', 'syntax', 1, 4],
  ['base: &b {x: 1}\na:\n  <<: *b', 'syntax', 3, 3],
  ['a: !!str 5', 'syntax', 1, 10],
  ['a: !!python/object:os.system x', 'syntax', 1, 4],
  ['a: ! 5', 'syntax', 1, 6],
  ['%YAML 1.1\n---\na: 1', 'syntax', 1, 1],
  ['a: 1\n---\nb: 2', 'syntax', 2, 1],
  ['a: [1, 2', 'syntax', 1, 9],
  ['a:\n\t- b', 'syntax', 2, 1],
  ['a: "\\q"', 'syntax', 1, 5],
  ['\ufeffa: 1', 'syntax', 1, 1],
  ['a: "\x01"', 'syntax', 1, 5],
  ['a: "x\u2028y"', 'syntax', 1, 6],
  ['a: 1\rb: 2', 'syntax', 1, 5],
  ['a: .inf', 'number_range', 1, 4],
  ['a: -.INF', 'number_range', 1, 4],
  ['a: .nan', 'number_range', 1, 4],
  ['a: 9223372036854775808', 'number_range', 1, 4],
  ['a: 1.0e+400', 'number_range', 1, 4],
  ['a: "\\ud800"', 'lone_surrogate', 1, 4],
  ['a: x\ud800', 'lone_surrogate', 1, 5],
];

const AMBIGUOUS = [
  ...['yes', 'Yes', 'NO', 'on', 'Off', '0644', '-012', '08', '00', '0o17', '0b11', '1_000', '-0x1F', '0x_1'],
  ...['1e5', '1E-5', '1.5e5', '-.5', '1_0.5', '1:30', '-1:30:59', '190:20:30.15', '<<', '='],
  ...['2024-01-01', '2001-12-14t21:59:43.10-05:00', '2001-12-14 21:59:43.10 -5', '2001-12-15 2:59:43.10'],
];

describe('valueFromYaml', () => {
  for (const [yaml, canonical] of READ) {
    test(`reads ${JSON.stringify(yaml)}`, () => assert.equal(canonicalText(valueFromYaml(yaml)), canonical));
  }

  for (const [yaml, code, line, column] of REFUSED) {
    test(`refuses ${JSON.stringify(yaml)}`, () => {
      assert.throws(() => valueFromYaml(yaml), { name: 'ValueError', code, line, column });
    });
  }

  for (const scalar of AMBIGUOUS) {
    test(`refuses ${scalar} without quotes and takes it with quotes`, () => {
      assert.throws(() => valueFromYaml(`- ${scalar}`), { code: 'syntax', offset: 2, message: /quote it/ });
      assert.deepEqual(valueFromYaml(`- "${scalar}"`), [scalar]);
    });
  }

  test('bounds the depth, of brackets, of dashes and through aliases', () => {
    assert.doesNotThrow(() => valueFromYaml(`${'['.repeat(64)}${']'.repeat(64)}`));
    for (const text of ['['.repeat(65) + ']'.repeat(65), '['.repeat(50_000), '- '.repeat(50_000)]) {
      assert.throws(() => valueFromYaml(text), { code: 'too_deep' });
    }
    assert.throws(() => valueFromYaml('- &a [[1]]\n- [*a]', { maxDepth: 3 }), { code: 'too_deep', line: 2 });
  });

  test('bounds what aliases make of a text', () => {
    const rows = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 9; i++) rows.push(`a${i}: &a${i} [${`*a${i - 1}, `.repeat(10)}]`);
    assert.throws(() => valueFromYaml(rows.join('\n')), { code: 'too_large' });
    const long = `a: &a ${'x'.repeat(10_000)}\nb: [${'*a, '.repeat(11)}]`;
    assert.throws(() => valueFromYaml(long), { code: 'too_large', line: 2 });
  });

  test('an alias is a copy', () => {
    const value = valueFromYaml('a: &x [1]\nb: *x') as { a: unknown[]; b: unknown[] };
    value.a.push(2n);
    assert.deepEqual(value.b, [1n]);
  });

  test('bounds the bytes and refuses invalid UTF-8', () => {
    assert.throws(() => valueFromYaml('a: éé', { maxBytes: 6 }), { code: 'too_large' });
    assert.throws(() => valueFromYaml(Uint8Array.from([0x61, 0xff])), { code: 'invalid_utf8', offset: 1 });
  });

  test('an error never holds the text', () => {
    for (const text of ['a: "hunter2', 'a: !hunter2 x', 'a: *hunter2', 'hunter2: 1\nhunter2: 2']) {
      assert.throws(
        () => valueFromYaml(text),
        (error) => error instanceof ValueError && !JSON.stringify([error.message, error]).includes('hunter2'),
      );
    }
  });
});
