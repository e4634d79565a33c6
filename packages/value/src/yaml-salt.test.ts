import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { canonicalText } from './canonical.ts';
import { ValueError, type ValueErrorCode } from './errors.ts';
import { valueFromSaltYaml } from './yaml-salt.ts';

// What Salt makes of these was asked of Salt: test/conformance/yaml.
const READ: [yaml: string, canonical: string][] = [
  ['', 'null'],
  ['[0644, -0644, +0644, 00, 0_7, -0_7, 08, 0o17]', '[644,-420,420,0,7,-7,"08","0o17"]'],
  ['[0b101, -0b1, 0x_1F, 1_000, 1:30, -1:30, 0:30]', '[5,-1,31,1000,90,-90,"0:30"]'],
  [
    '[1e5, 1.5e5, 1.5e+5, 5.e+3, .5, -.5, 1_0.5, 1:30.5]',
    '["1e5","1.5e5",150000.0,5000.0,0.5,"-.5",10.5,90.5]',
  ],
  ['[yes, Off, y, N, yEs, ~, null, nUll]', '[true,false,"y","N","yEs",null,null,"nUll"]'],
  [
    '[2024-01-01, 2001-12-14t21:59:43.10-05:00, 12e45678]',
    '["2024-01-01","2001-12-14t21:59:43.10-05:00","12e45678"]',
  ],
  ['a: !!str 0644\nb: !!str\n', '{"a":"0644","b":""}'],
  ['=: 1\n2024-01-01: 2', '{"2024-01-01":2,"=":1}'],
  ['"<<": {a: 1}', '{"<<":{"a":1}}'],
  ['a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  p: 3', '{"a":{"p":1,"q":2},"b":{"p":3,"q":2}}'],
  ['<<: {a: 1}\n<<: {b: 2}\nc: 3', '{"a":1,"b":2,"c":3}'],
  [
    'a: &x {p: 1}\nb: &y {<<: *x, q: 2}\nc: {<<: [*y, {r: 3}]}',
    '{"a":{"p":1},"b":{"p":1,"q":2},"c":{"p":1,"q":2,"r":3}}',
  ],
  ['- &x 1\n- &y [*x]\n- *y\n- *x', '[1,[1],[1],1]'],
  ['c: &k k\nd: {*k : 1}', '{"c":"k","d":{"k":1}}'],
  ['a: |\n  x\n  y', '{"a":"x\\ny"}'],
];

const REFUSED: [yaml: string, code: ValueErrorCode, line: number, column: number, reason?: RegExp][] = [
  ['a: 1\n80: x', 'syntax', 2, 1, /an integer, not text/u],
  ['{1: a, "1": b}', 'syntax', 1, 2, /an integer/u],
  ['on: push', 'syntax', 1, 1, /a boolean/u],
  ['1.5: x', 'syntax', 1, 1, /a float/u],
  ['~: x', 'syntax', 1, 1, /null/u],
  ['? [a]\n: b', 'syntax', 1, 3, /a list/u],
  ['a: 1\na: 2', 'duplicate_key', 2, 1],
  ['a: &x {p: 1}\nb: &y {p: 2}\nc: {<<: [*x, *y]}', 'duplicate_key', 1, 8],
  ['a: =', 'syntax', 1, 4],
  ['a: <<', 'syntax', 1, 4],
  ['<<: x', 'syntax', 1, 5],
  ['<<: [{a: 1}, x]', 'syntax', 1, 14],
  ['a: 0_', 'syntax', 1, 4],
  ['a: !!binary aGk=', 'syntax', 1, 13],
  ['a: 9223372036854775808', 'number_range', 1, 4],
  ['a: 1.0e+309', 'number_range', 1, 4],
  ['a: .inf', 'number_range', 1, 4],
  ['a: &a [*a]', 'syntax', 1, 8],
  ['a: &a.b x', 'syntax', 1, 9],
  ['[&x 1, &x 2]', 'syntax', 1, 11],
  ['[?x]', 'syntax', 1, 2],
  ['{k:, l: 1}', 'syntax', 1, 2],
  ['a: |\n  x\n    ', 'syntax', 3, 5],
  ['%YAML 1.1\n---\na: 1', 'syntax', 1, 1],
];

describe('valueFromSaltYaml', () => {
  for (const [yaml, canonical] of READ) {
    test(`reads ${JSON.stringify(yaml)}`, () =>
      assert.equal(canonicalText(valueFromSaltYaml(yaml)), canonical));
  }

  for (const [yaml, code, line, column, reason] of REFUSED) {
    test(`refuses ${JSON.stringify(yaml)}`, () => {
      const expected = { name: 'ValueError', code, line, column };
      assert.throws(
        () => valueFromSaltYaml(yaml),
        reason === undefined ? expected : { ...expected, message: reason },
      );
    });
  }

  test('bounds the depth, and what aliases and merges make of a text', () => {
    assert.throws(() => valueFromSaltYaml('['.repeat(65) + ']'.repeat(65)), { code: 'too_deep' });
    const rows = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 9; i++) rows.push(`a${i}: &a${i} [${`*a${i - 1}, `.repeat(10)}]`);
    assert.throws(() => valueFromSaltYaml(rows.join('\n')), { code: 'too_large' });
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}: 1`).join(', ');
    const merges = Array.from({ length: 1000 }, (_, i) => `m${i}: {<<: *m}`).join('\n');
    assert.throws(() => valueFromSaltYaml(`m: &m {${keys}}\n${merges}`), { code: 'too_large' });
    const chain = Array.from(
      { length: 100 },
      (_, i) => `m${i}: &m${i} {<<: ${i === 0 ? '{}' : `*m${i - 1}`}, k${i}: 1}`,
    );
    assert.throws(() => valueFromSaltYaml(chain.join('\n')), { code: 'too_deep' });
  });

  test('an error never holds the text', () => {
    for (const text of ['hunter2: 1\nhunter2: 2', 'a: !hunter2 x', 'a: *hunter2', '? {hunter2: 1}\n: 2']) {
      assert.throws(
        () => valueFromSaltYaml(text),
        (error) => error instanceof ValueError && !JSON.stringify([error.message, error]).includes('hunter2'),
      );
    }
  });
});
