import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseValue, toPlain } from '@colonnade/value';
import { linesOf } from './lines.ts';
import { recordsFromMinionFiles } from './minion-files.ts';
import type { Converted } from './problem.ts';
import { recordsFromSaltTree } from './salt-tree.ts';

const tree = (files: Record<string, string>, options = {}) =>
  recordsFromSaltTree(new Map(Object.entries(files)), { master: 'salt-a', ...options });
const plainOf = ({ records }: Converted) =>
  [...linesOf(records)].map((line) => toPlain(parseValue(line.trim())) as Record<string, unknown>);

const TREE = {
  'top.sls':
    "base:\n  '*': [common, extra]\n  web-1.example: [web.db]\n  'web*':\n    - match: glob\n    - web\n",
  'common.sls': 'motd: hello\nmode: 0644\nssh: {port: 22, keys: [a, b]}\n',
  'extra/init.sls': 'ssh: {keys: [c], user: root}\n',
  'web/init.sls': '#!yaml\ntemplate: "{{ not jinja }}"\nssh: {port: 2222}\n',
  'web/db.sls': 'include:\n  - .secret\n  - common\nmotd: changed\n',
  'web/secret.sls': '#!jinja|yaml\npassword: hunter2\nmotd: first\n',
};

test('a tree becomes root, minion and collection pillars, merged within a target as Salt does', () => {
  const converted = tree(TREE, { collections: { 'web*': 'web' }, secrets: ['password'] });
  assert.deepEqual(converted.problems, []);
  const minion = { kind: 'pillar', tgt_type: 'minion', master: 'salt-a', minion_id: 'web-1.example' };
  const root = { kind: 'pillar', tgt_type: 'root' };
  const web = { kind: 'pillar', tgt_type: 'collection', collection_id: 'web' };
  assert.deepEqual(plainOf(converted), [
    { kind: 'master', id: 'salt-a' },
    { kind: 'minion', master: 'salt-a', id: 'web-1.example', collections: ['web'] },
    { ...root, name: 'mode', value: 644 },
    { ...root, name: 'motd', value: 'hello' },
    { ...root, name: 'ssh', value: { port: 22, keys: ['c'], user: 'root' } },
    { ...web, name: 'ssh', value: { port: 2222, keys: ['c'], user: 'root' } },
    { ...web, name: 'template', value: '{{ not jinja }}' },
    { ...minion, name: 'motd', value: 'changed' },
    { ...minion, name: 'password', is_secret: true, value: 'hunter2' },
    { ...minion, name: 'ssh', value: { port: 2222, keys: ['a', 'b'], user: 'root' } },
  ]);
  assert.deepEqual(converted.notes, []);
  const grains = { ...TREE, 'top.sls': TREE['top.sls'].replace('match: glob', 'match: grain') };
  const { notes } = tree(grains, { collections: { 'web*': 'web' } });
  assert.match(notes[0]?.reason ?? '', /"ssh" is a mapping for "web-1.example" and "web\*"/u);
});

test('what cannot be taken is named with its file and line, and no value is repeated', () => {
  const cases: [files: Record<string, string>, file: string, line: number | undefined, reason: RegExp][] = [
    [{ 'top.sls': "base:\n  '*': [a]\n", 'a.sls': 'x: 1\ny: {{ pillar.hunter2 }}\n' }, 'a.sls', 2, /Jinja/u],
    [{ 'top.sls': "base:\n  '*': [a]\n", 'a.sls': '{% set x = "hunter2" %}\n' }, 'a.sls', 1, /Jinja/u],
    [{ 'top.sls': "base:\n  '*': [a]\n", 'a.sls': '#!yaml|gpg\nx: hunter2\n' }, 'a.sls', 1, /renderer/u],
    [{ 'top.sls': "base:\n  '*': [a]\n", 'a.sls': 'x:\n  80: hunter2\n' }, 'a.sls', 2, /an integer/u],
    [{ 'top.sls': "base:\n  '*': [a]\n", 'a.sls': '- hunter2\n' }, 'a.sls', 1, /mapping/u],
    [{ 'top.sls': "base:\n  '*': [a]\n" }, 'top.sls', undefined, /"a" is not in the tree/u],
    [
      { 'top.sls': "base:\n  '*': [a]\n", 'a.sls': 'include:\n  - b: {key: c}\n' },
      'a.sls',
      undefined,
      /options/u,
    ],
    [{ 'top.sls': "base:\n  'os:Debian': [{match: grain}, a]\n", 'a.sls': '' }, 'top.sls', 2, /collection/u],
    [{ 'top.sls': 'base:\n  web: [{match: nodegroup}, a]\n', 'a.sls': '' }, 'top.sls', 2, /collection/u],
    [{ 'top.sls': "base: {}\nprod:\n  '*': [a]\n", 'a.sls': '' }, 'top.sls', 2, /environment/u],
    [{ 'top.sls': "base:\n  'web*': [a]\n", 'a.sls': '' }, 'top.sls', 2, /collection/u],
    [{ 'top.sls': "base:\n  'web* and G@os:Debian': [a]\n", 'a.sls': '' }, 'top.sls', 2, /collection/u],
    [{ 'top.sls': "base:\n  '*': a\n", 'a.sls': '' }, 'top.sls', 2, /no list/u],
    [{ 'top.sls': "base:\n  '*': [a, {order: 1}]\n", 'a.sls': '' }, 'top.sls', 2, /"order"/u],
    [{ 'top.sls': "base:\n  '*': [a, 7]\n", 'a.sls': '' }, 'top.sls', 2, /no name/u],
    [{ 'top.sls': "base:\n  '*': [a]\n", 'a.sls': '_errors: hunter2\n' }, 'top.sls', undefined, /reserved/u],
    [{ 'a.sls': '' }, 'top.sls', undefined, /not in the tree/u],
  ];
  for (const [files, file, line, reason] of cases) {
    const { problems } = tree(files);
    assert.deepEqual([problems[0]?.file, problems[0]?.line], [file, line], JSON.stringify(files));
    assert.match(problems[0]?.reason ?? '', reason);
    assert.ok(!JSON.stringify(problems).includes('hunter2'));
  }
});

test('a file for each minion', () => {
  const files = new Map([
    ['b.example.yaml', 'x: yes\n'],
    ['pillar/a.example.yml', 'password: 0123\n'],
    ['bad:id.yaml', 'x: 1\n'],
    ['c.example.yaml', 'on: push\n'],
  ]);
  const converted = recordsFromMinionFiles(files, { master: 'salt-a', secrets: ['password'] });
  const target = { kind: 'pillar', tgt_type: 'minion', master: 'salt-a' };
  assert.deepEqual(plainOf(converted), [
    { kind: 'master', id: 'salt-a' },
    { kind: 'minion', master: 'salt-a', id: 'b.example' },
    { ...target, minion_id: 'b.example', name: 'x', value: true },
    { kind: 'minion', master: 'salt-a', id: 'a.example' },
    { ...target, minion_id: 'a.example', name: 'password', is_secret: true, value: 123 },
  ]);
  assert.deepEqual(
    converted.problems.map(({ file }) => file),
    ['bad:id.yaml', 'bad:id.yaml', 'c.example.yaml'],
  );
});
