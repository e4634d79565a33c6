import type { Memory, Step } from '../support.ts';

const YES = [{ expect: 'Type "yes"', send: 'yes\r' }];
const yesIn = ({ mode }: Memory) => (mode === 'pipe' ? ['--yes'] : []);
const SECRET = 'correct horse battery staple';
const NEXT = 'another horse';

/** What becomes of a pillar over time: versions, ways back, other names and places, and its end. */
export const HISTORY_STEPS: readonly Step[] = [
  {
    command: 'pillar create',
    args: (m) => [m.own('level'), '--root', '--value', '{"a":1,"b":1.0}'],
    shows: /value/,
    keep: { pid: 'pid', first: 'clock' },
  },
  {
    command: 'pillar set',
    args: (m) => [m.own('level'), '--root', '--value', '{"a":2,"b":1.0}'],
    shows: /\{"a":2,"b":1\.0\}/,
    keep: { second: 'clock' },
  },
  {
    command: 'diff',
    args: (m) => [m.own('level'), '--root', '--from', m.kept.first ?? ''],
    shows: /--- [\s\S]*\+\+\+ [\s\S]*- \/a: 1\n\+ \/a: 2\n/,
    reads: true,
  },
  {
    command: 'history',
    args: (m) => [m.kept.pid ?? '', '--clock', m.kept.first ?? ''],
    shows: /op +create/,
    reads: true,
  },
  {
    command: 'explain',
    args: (m) => ['all-mover', '--master', 'salt', '--at', m.kept.first ?? '', '--name', m.own('level')],
    shows:
      /clock \d+ \(memberships and tasks of \d+\)[\s\S]*-level = \{"a":1,"b":1\.0\}[\s\S]*root {2}\S+ clock \d+/,
    reads: true,
  },
  {
    command: 'changes',
    args: (m) => ['--since', m.kept.first ?? '', '--once'],
    shows: / +CLOCK {2}KIND +WHAT\n +\d+ {2}scope +base\n/,
    reads: true,
    json: 'lines',
  },
  {
    command: 'pillar restore',
    args: (m) => [m.own('level'), '--root', '--clock', m.kept.first ?? ''],
    shows: /\{"a":1,"b":1\.0\}/,
  },
  {
    command: 'scope restore',
    args: (m) => ['base', '--at', m.kept.second ?? '', '--pid', m.kept.pid ?? '', '--dry-run'],
    shows: /update +\w+-level/,
    reads: true,
  },
  {
    command: 'scope restore',
    args: (m) => ['base', '--at', m.kept.second ?? '', '--pid', m.kept.pid ?? '', ...yesIn(m)],
    types: YES,
    shows: /restored, clock \d+/,
  },
  {
    command: 'pillar rename',
    args: (m) => [m.own('level'), m.own('renamed'), '--root'],
    shows: /name +\w+-renamed/,
  },
  {
    command: 'pillar move',
    args: (m) => [m.own('renamed'), '--root', '--to-collection', 'shop'],
    shows: /tgt_type +collection/,
  },
  {
    command: 'pillar delete',
    args: (m) => [m.own('renamed'), '--collection', 'shop', ...yesIn(m)],
    types: YES,
    shows: /./,
  },
  {
    command: 'pillar restore',
    args: (m) => [m.kept.pid ?? '', '--clock', m.kept.first ?? ''],
    shows: /\{"a":1,"b":1\.0\}/,
  },
  { command: 'pillar purge', args: (m) => [m.kept.pid ?? '', ...yesIn(m)], types: YES, shows: /./ },
  {
    command: 'pillar create',
    args: (m) => [m.own('key'), '--root', '--secret'],
    stdin: SECRET,
    types: [
      { expect: 'Secret: ', send: `${SECRET}\r` },
      { expect: 'again: ', send: `${SECRET}\r` },
    ],
    shows: /\*{7}/,
  },
  {
    command: 'pillar replace',
    args: (m) => [m.own('key'), '--root'],
    stdin: NEXT,
    types: [
      { expect: 'Secret: ', send: `${NEXT}\r` },
      { expect: 'again: ', send: `${NEXT}\r` },
    ],
    shows: /\*{7}/,
  },
  {
    command: 'pillar reveal',
    args: (m) => [m.own('key'), '--root'],
    shows: /^another horse\n?$/,
    reads: true,
  },
  { command: 'retention show', args: () => [], shows: /keep_versions/, reads: true },
  { command: 'retention run', args: (m) => yesIn(m), types: YES, shows: /removed +\d+/ },
  {
    command: 'minion move',
    args: (m) => ['salt', m.own('mover'), 'west'],
    shows: /master +west/,
  },
];
