import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ColonnadeError } from '@colonnade/contracts';
import { loadPolicy } from './load.ts';

const head = 'apiVersion: audit.k8s.io/v1\nkind: Policy\n';
const load = (text: string, strict = false) => loadPolicy(text, { strict });

function refused(text: string): string {
  try {
    load(text);
  } catch (thrown) {
    assert.ok(thrown instanceof ColonnadeError && thrown.code === 'misconfigured', String(thrown));
    return thrown.message;
  }
  throw new Error(`accepted: ${text}`);
}

describe('a policy is refused, with the place', () => {
  const rule = (fields: string) => `${head}rules:\n- level: Metadata\n  ${fields}\n`;
  const table: readonly (readonly [what: string, text: string, place: RegExp])[] = [
    ['no rules', `${head}rules: []`, /^rules: /u],
    ['no rules at all', head, /^rules: /u],
    ['an empty file', '', /^the policy: /u],
    ['a list', '- level: None', /^the policy: /u],
    ['no apiVersion', 'kind: Policy\nrules: [{level: None}]', /^apiVersion: /u],
    ['another apiVersion', 'apiVersion: audit.k8s.io/v2\nrules: [{level: None}]', /^apiVersion: /u],
    ['another kind', 'apiVersion: audit.k8s.io/v1\nkind: Event\nrules: [{level: None}]', /^kind: /u],
    ['a rule without a level', `${head}rules: [{users: [a]}]`, /^rules\[0\]\.level: /u],
    ['a level that is none', `${head}rules: [{level: None}, {level: none}]`, /^rules\[1\]\.level: /u],
    ['a stage that is none', rule('omitStages: [Panic, Begin]'), /^rules\[0\]\.omitStages\[1\]: /u],
    [
      'a stage of the policy that is none',
      `${head}omitStages: [x]\nrules: [{level: None}]`,
      /^omitStages\[0\]: /u,
    ],
    [
      'a group with a version',
      rule('resources: [{}, {group: apps/v1}]'),
      /^rules\[0\]\.resources\[1\]\.group: /u,
    ],
    [
      'names without resources',
      rule('resources: [{resourceNames: [a]}]'),
      /^rules\[0\]\.resources\[0\]\.resourceNames: /u,
    ],
    ['a relative URL', rule('nonResourceURLs: [api]'), /^rules\[0\]\.nonResourceURLs\[0\]: /u],
    ['a wildcard inside', rule('nonResourceURLs: ["/a*b"]'), /^rules\[0\]\.nonResourceURLs\[0\]: /u],
    [
      'URLs and namespaces',
      rule('namespaces: [a]\n  nonResourceURLs: ["/a"]'),
      /^rules\[0\]\.nonResourceURLs: /u,
    ],
    ['a number for a user', rule('users: [1]'), /^rules\[0\]\.users\[0\]: /u],
    ['yes for a user, which is true', rule('users: [yes]'), /^rules\[0\]\.users\[0\]: /u],
    ['a text for a list', rule('verbs: get'), /^rules\[0\]\.verbs: /u],
    ['broken YAML', `${head}rules: [`, /^line 3 column \d+: /u],
    ['broken JSON', '{"apiVersion": }', /^line 1 column 16: /u],
    ['a tab as indentation', `${head}rules:\n\t- level: None`, /^line 4 column \d+: /u],
    ['a control character', `${head}rules: [{level: "\u0000"}]`, /^line 3: /u],
  ];
  for (const [what, text, place] of table) test(what, () => assert.match(refused(text), place));

  test('every fault at once', () => {
    const message = refused(`${head}rules:\n- level: x\n  omitStages: [begin]\n- nonResourceURLs: [z]\n`);
    const places = message.split('; ').map((fault) => fault.split(': ')[0]);
    assert.deepEqual(places, [
      'rules[0].level',
      'rules[0].omitStages[0]',
      'rules[1].level',
      'rules[1].nonResourceURLs[0]',
    ]);
  });

  test('bytes that are not UTF-8, and more than can be meant', () => {
    assert.throws(() => loadPolicy(Buffer.from([0x61, 0xff]), { strict: false }), { code: 'misconfigured' });
    assert.throws(() => load(`#${' '.repeat(5_000_000)}`), { code: 'misconfigured' });
    const deep = `${head}x: ${'['.repeat(2000)}${']'.repeat(2000)}\nrules: [{level: None}]`;
    assert.throws(() => load(deep), { code: 'misconfigured' });
  });

  test('aliases that multiply', () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) => `a${i}: &a${i} [${Array(9).fill(i ? `*a${i - 1}` : 'x')}]`,
    );
    assert.match(refused(`${levels.join('\n')}\n${head}rules: [{level: None}]`), /aliases/u);
    assert.match(refused(`${head}rules: &r [*r]`), /contains itself|unknown anchor/u);
  });
});

describe('a policy is accepted with a warning, and refused when strict', () => {
  const table: readonly (readonly [what: string, text: string, warnings: readonly string[]])[] = [
    [
      'unknown fields',
      `${head}x: 1\nrules: [{level: None, levle: None}]`,
      ['unknown field "rules[0].levle"', 'unknown field "x"'],
    ],
    [
      'a name in another case',
      `${head}rules: [{level: None, Users: [a]}]`,
      ['unknown field "rules[0].Users"'],
    ],
    [
      'a key twice in YAML',
      `${head}rules:\n- level: None\n  level: Request\n`,
      ['yaml: unmarshal errors:\n  line 5: key "level" already set in map'],
    ],
    [
      'a key twice in JSON',
      '{"apiVersion":"audit.k8s.io/v1","rules":[{"level":"None","level":"Request"}]}',
      ['duplicate field "rules[0].level"'],
    ],
    [
      'v1beta1',
      'apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules:\n- level: Request',
      ['apiVersion audit.k8s.io/v1beta1 is old and read as audit.k8s.io/v1'],
    ],
    [
      'a second document',
      `${head}rules: [{level: Request}]\n---\nrules: []`,
      ['only the first YAML document is read'],
    ],
  ];
  for (const [what, text, warnings] of table) {
    test(what, () => {
      assert.deepEqual(load(text).warnings, warnings);
      assert.throws(() => load(text, true), { code: 'misconfigured', message: /strictly/u });
    });
  }

  test('the last of two equal keys counts in YAML; in JSON the second list is decoded into the first', () => {
    const yaml = `${head}rules: [{level: None, users: [a]}]\nrules: [{level: Request}]`;
    assert.deepEqual(load(yaml).policy.rules[0]?.users, []);
    const json =
      '{"apiVersion":"audit.k8s.io/v1","rules":[{"level":"None","users":["a"]}],"rules":[{"level":"Request"}]}';
    const [rule, ...others] = load(json).policy.rules;
    assert.deepEqual([rule?.level, rule?.users, others.length], ['Request', ['a'], 0]);
  });
});

test('JSON and YAML, a missing kind, anchors and merge keys are read alike', () => {
  const texts = [
    '{"apiVersion":"audit.k8s.io/v1","rules":[{"level":"Request","users":["a"]},{"level":"Request","users":["b"]}]}',
    'apiVersion: audit.k8s.io/v1\nrules:\n- &r {level: Request, users: [a]}\n- <<: *r\n  users: [b]\n',
  ];
  const [first, second] = texts.map((text) => load(text).policy);
  assert.deepEqual(first, second);
});
