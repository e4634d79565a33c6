import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Memory, Step } from '../support.ts';

const YES = [{ expect: 'Type "yes"', send: 'yes\r' }];
const yesIn = ({ mode }: Memory) => (mode === 'pipe' ? ['--yes'] : []);
const SECRET = 'correct horse battery staple';
const TWICE = [
  { expect: 'Secret: ', send: `${SECRET}\r` },
  { expect: 'again: ', send: `${SECRET}\r` },
];

/** What a preview supposes; each line of it is an element of the list. */
function changesFile(m: Memory): string {
  const target = '{op: set, tgt_type: collection, collection_id: shop, name';
  const file = path.join(m.dir, 'changes.yaml');
  const pin = `- ${target}: ${m.own('pin')}, is_secret: true, value: ${SECRET}}`;
  writeFileSync(file, `- ${target}: ${m.own('motd')}, value: hello}\n${pin}\n`);
  return file;
}

/** Pillars of the root, plain and secret; the collection and the minion of the stack hang around them. */
export const PILLAR_STEPS: readonly Step[] = [
  {
    command: 'pillar create',
    args: (m) => [m.own('motd'), '--root', '--value', '{"big":9007199254740993,"ratio":1.0}'],
    shows: /value +\{"big":9007199254740993,"ratio":1\.0\}/,
    keep: { pid: 'pid' },
  },
  { command: 'pillar get', args: (m) => [m.own('motd'), '--root'], shows: /tgt_type +root/, reads: true },
  {
    command: 'pillar get',
    args: (m) => [m.kept.pid ?? '', '--value-only'],
    shows: /^\{"big":9007199254740993,"ratio":1\.0\}\n$/,
    reads: true,
  },
  { command: 'pillar list', args: () => ['--root'], shows: /PID +TARGET[\s\S]*-motd/, reads: true },
  {
    command: 'pillar set',
    args: (m) => [m.own('motd'), '--root', '--value', 'good morning', '--as', 'text'],
    shows: /value +"good morning"/,
  },
  {
    command: 'pillar edit',
    args: (m) => [m.own('motd'), '--root'],
    env: () => ({ EDITOR: `sed -i s/morning/evening/` }),
    shows: /value +"good evening"/,
  },
  {
    command: 'history',
    args: (m) => [m.kept.pid ?? ''],
    shows: /CLOCK[\s\S]*create[\s\S]*good evening/,
    reads: true,
  },
  {
    command: 'pillar create',
    args: (m) => [m.own('key'), '--collection', 'shop', '--secret'],
    stdin: `${SECRET}\n`,
    types: TWICE,
    shows: /value +\*{7}/,
    looks: (output) => assert.doesNotMatch(output, /battery/u, 'a secret was shown while it was typed'),
  },
  { command: 'pillar list', args: () => ['--collection', 'shop'], shows: /-key +yes/, reads: true },
  {
    command: 'pillar reveal',
    args: (m) => [m.own('key'), '--collection', 'shop'],
    shows: /^correct horse battery staple\n?$/,
    reads: true,
  },
  {
    command: 'pillar reveal',
    args: (m) => [m.own('key'), '--collection', 'shop', '--output-file', path.join(m.dir, 'key')],
    shows: /^$/,
    json: 'none',
    async after(m) {
      const file = path.join(m.dir, 'key');
      assert.equal(await readFile(file, 'utf8'), SECRET);
      assert.equal((await stat(file)).mode & 0o777, 0o600);
    },
  },
  {
    command: 'pillar unseal',
    args: (m) => [m.own('key'), '--collection', 'shop', ...yesIn(m)],
    types: YES,
    shows: /is_secret +false/,
  },
  {
    command: 'pillar reach',
    args: (m) => [m.own('key'), '--collection', 'shop'],
    shows: /MASTER +MINION +THROUGH\n/,
    reads: true,
  },
  { command: 'pillar seal', args: (m) => [m.own('key'), '--collection', 'shop'], shows: /is_secret +true/ },
  {
    command: 'pillar purge-history',
    args: (m) => [m.own('key'), '--collection', 'shop', ...yesIn(m)],
    types: YES,
    shows: /./,
  },
  {
    command: 'pillar create',
    args: (m) => [
      m.own('level'),
      '--minion',
      'web-1',
      '--master',
      'salt',
      '--value-file',
      '-',
      '--as',
      'yaml',
    ],
    stdin: 'level: 0x1f\n'.replace('0x1f', '31'),
    types: [{ expect: '', send: 'level: 31\r\u0004' }],
    shows: /value +\{"level":31\}/,
  },
  {
    command: 'explain',
    args: (m) => ['web-1', '--master', 'salt', '--name', m.own('motd')],
    shows: /web-1 of salt, clock \d+, [\s\S]*-motd = "good evening"\n +└─ won {2}root/,
    reads: true,
  },
  {
    command: 'explain',
    args: (m) => ['web-1', '--master', 'salt', '--collection', 'shop', '--with', changesFile(m)],
    shows:
      /-motd = "hello"\n.*├─ won {2}collection:shop {2}\(not saved\)\n.*└─ over root {2}[\s\S]*-pin = \*{7}/,
    reads: true,
  },
  { command: 'pillar delete', args: (m) => [m.own('motd'), '--root', ...yesIn(m)], types: YES, shows: /./ },
];
