import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Memory, Step } from '../support.ts';

const YES = [{ expect: 'Type "yes"', send: 'yes\r' }];
const yesIn = ({ mode }: Memory) => (mode === 'pipe' ? ['--yes'] : []);
/** Files every mode shares; `prepareTaskFiles` makes them. */
const at = (m: Memory, name: string) => path.join(m.dir, '..', name);

export const TASK_FILES: Readonly<Record<string, string>> = {
  'schema.json': '{"type":"object","properties":{"version":{"type":"string"},"key":{"type":"string"}}}',
  'values.yaml': 'version: "1.0"\n',
  'secrets.yaml': 'key: s3cret\n',
};

/** A template, what somebody saved for it, and a task from its beginning to its end. */
export const TASK_STEPS: readonly Step[] = [
  {
    command: 'template create',
    args: (m) => [m.own('deploy'), '--schema', at(m, 'schema.json')],
    shows: /id +\w+-deploy/,
  },
  { command: 'template list', args: () => [], shows: /ID +NAME[\s\S]*-deploy/, reads: true },
  { command: 'template set', args: (m) => [m.own('deploy'), '--name', 'Deploy'], shows: /name +Deploy/ },
  {
    command: 'template defaults',
    args: (m) => [m.own('deploy'), '--values', at(m, 'values.yaml'), '--secrets', at(m, 'secrets.yaml')],
    shows: /version[\s\S]*"1\.0"/,
  },
  {
    command: 'template get',
    args: (m) => [m.own('deploy'), '--with-defaults'],
    shows: /applied +version[\s\S]*secrets +key/,
    reads: true,
  },
  {
    command: 'task create',
    args: (m) => [
      m.own('deploy'),
      '--minion',
      'salt/web-1',
      '--values',
      at(m, 'values.yaml'),
      '--default',
      'key',
      '--save',
      path.join(m.dir, 'identity'),
    ],
    // Its token is in the file, and nowhere else.
    shows: /^(?![\s\S]*eyJ)[\s\S]*state +created/,
    keep: { task: 'id' },
    after: (m) => assertSaved(path.join(m.dir, 'identity', 'token')),
  },
  { command: 'task list', args: () => ['--state', 'created'], shows: /TEMPLATE[\s\S]*-deploy/, reads: true },
  { command: 'task get', args: (m) => [m.kept.task ?? ''], shows: /pillars .*"version"/, reads: true },
  {
    command: 'task token',
    args: (m) => [m.kept.task ?? '', '--save', path.join(m.dir, 'again')],
    shows: /^(?![\s\S]*eyJ)[\s\S]*jti +[\w-]+/,
    after: (m) => assertSaved(path.join(m.dir, 'again', 'token')),
  },
  { command: 'task token', args: (m) => [m.kept.task ?? ''], shows: /jti +[\w-]+[\s\S]*token +eyJ\S{40}/ },
  { command: 'task state', args: (m) => [m.kept.task ?? '', 'running'], shows: /state +running/ },
  { command: 'task state', args: (m) => [m.kept.task ?? '', 'succeeded'], shows: /state +succeeded/ },
  { command: 'task delete', args: (m) => [m.kept.task ?? '', ...yesIn(m)], types: YES, shows: /./ },
  { command: 'template delete', args: (m) => [m.own('deploy'), ...yesIn(m)], types: YES, shows: /./ },
  {
    command: 'pillar for-target',
    args: () => ['root', 'root', '--pillarenv', 'base'],
    shows: /PID[\s\S]*motd/,
    reads: true,
  },
];

async function assertSaved(file: string): Promise<void> {
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.match(await readFile(file, 'utf8'), /^eyJ\S{40}/u);
}
