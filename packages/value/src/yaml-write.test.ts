import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { valuesEqual } from './equal.ts';
import type { Value } from './value.ts';
import { valueFromYaml } from './yaml-read.ts';
import { valueToYaml } from './yaml-write.ts';

const WRITTEN: [value: Value, yaml: string][] = [
  [null, 'null\n'],
  [1n, '1\n'],
  [1, '1.0\n'],
  [-0, '-0.0\n'],
  [1e16, '1.0e+16\n'],
  [-1e-7, '-1.0e-07\n'],
  [1.5e300, '1.5e+300\n'],
  ['', '""\n'],
  [{}, '{}\n'],
  [[], '[]\n'],
  [{ b: 1n, a: [] }, 'b: 1\na: []\n'],
  [{ a: { b: [1n, { c: 'd' }] } }, 'a:\n  b:\n    - 1\n    - c: d\n'],
  [{ path: '/etc/salt/master.d', words: 'a few words' }, 'path: /etc/salt/master.d\nwords: a few words\n'],
  [{ key: '-----BEGIN-----\nabc=\n-----END-----\n' }, 'key: |\n  -----BEGIN-----\n  abc=\n  -----END-----\n'],
  [{ key: 'a\nb' }, 'key: |-\n  a\n  b\n'],
  [{ key: 'a\n\n' }, 'key: "a\\n\\n"\n'],
  ['\x7f\u2028\ufeff\0😀é', '"\\u007f\\u2028\\ufeff\\u0000😀é"\n'],
];

const QUOTED = [
  ...['yes', 'No', 'ON', 'off', 'y', 'N', 'true', 'False', 'null', 'NULL', '~', '=', '<<', '-', '?', '---'],
  ...[
    '0644',
    '0o17',
    '0x1F',
    '0b1',
    '1_000',
    '1',
    '-1',
    '1.0',
    '1e5',
    '.5',
    '.inf',
    '.NaN',
    '1:30',
    '2024-01-01',
  ],
  ...[
    'a: b',
    'a #b',
    '#a',
    '&a',
    '*a',
    '!a',
    '%a',
    '@a',
    '`a',
    '- a',
    ' a',
    'a ',
    'a  b',
    '[a]',
    '{a}',
    'a\tb',
  ],
];

describe('valueToYaml', () => {
  for (const [value, yaml] of WRITTEN) {
    test(`writes ${JSON.stringify(yaml)}`, () => {
      assert.equal(valueToYaml(value), yaml);
      assert.ok(valuesEqual(valueFromYaml(yaml), value));
    });
  }

  for (const text of QUOTED) {
    test(`quotes ${JSON.stringify(text)}, as a value and as a key`, () => {
      const yaml = valueToYaml({ [text]: text });
      assert.equal(yaml, `${JSON.stringify(text)}: ${JSON.stringify(text)}\n`);
      assert.deepEqual(parse(yaml, { version: '1.1' }), { [text]: text });
      assert.deepEqual(parse(yaml, { version: '1.2' }), { [text]: text });
    });
  }

  test('writes a key past 1024 characters so that it can be read', () => {
    const key = 'k'.repeat(2000);
    assert.ok(valuesEqual(valueFromYaml(valueToYaml({ [key]: [1n] })), { [key]: [1n] }));
  });

  test('writes long texts on one line', () => {
    const value = { a: 'some words '.repeat(50) };
    assert.equal(valueToYaml(value).split('\n').length, 2);
  });

  test('writes shared parts twice instead of anchors', () => {
    const shared = { a: 1n };
    assert.equal(valueToYaml([shared, shared]), '- a: 1\n- a: 1\n');
  });

  test('refuses what is not a value', () => {
    assert.throws(() => valueToYaml({ a: undefined } as unknown as Value), { code: 'not_a_value' });
    assert.throws(() => valueToYaml(['\ud800']), { code: 'lone_surrogate' });
    assert.throws(() => valueToYaml(Number.NaN), { code: 'number_range' });
  });
});
