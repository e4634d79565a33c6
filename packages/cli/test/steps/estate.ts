import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Step } from '../support.ts';

const YES = [{ expect: 'Type "yes"', send: 'yes\r' }];
/** In a pipe nobody can be asked. */
const yesIn = ({ mode }: { mode: string }) => (mode === 'pipe' ? ['--yes'] : []);

/** Collections, minions, masters and tokens: each made, seen, changed and taken away. */
export const ESTATE_STEPS: readonly Step[] = [
  { command: 'collection create', args: (m) => [m.own('shop'), '--name', 'Shops'], shows: /name +Shops/ },
  {
    command: 'collection create',
    args: (m) => [m.own('east'), '--parent', m.own('shop')],
    shows: /parent_id +\w+-shop/,
  },
  { command: 'collection list', args: () => [], shows: /ID +NAME[\s\S]*-shop/, reads: true },
  { command: 'collection get', args: (m) => [m.own('east')], shows: /ancestors +\w+-shop/, reads: true },
  { command: 'collection set', args: (m) => [m.own('east'), '--top', '--name', 'East'], shows: /name +East/ },
  {
    command: 'collection rule set',
    args: (m) => [m.own('east'), '--file', path.join(m.dir, '..', 'rule.yaml')],
    shows: /rule +\{"field":"os\.name","op":"eq","value":"Debian"\}/,
  },
  {
    command: 'collection rule delete',
    args: (m) => [m.own('east'), ...yesIn(m)],
    types: YES,
    shows: /name +East/,
  },
  {
    command: 'master create',
    args: (m) => [m.own('salt'), '--env', 'prod', '--save', path.join(m.dir, 'credentials')],
    shows: /envs +prod/,
    async after(m) {
      for (const name of ['token', 'redis-password', 'users.acl']) {
        const file = path.join(m.dir, 'credentials', name);
        assert.equal((await stat(file)).mode & 0o777, 0o600);
        assert.ok((await readFile(file, 'utf8')).length > 20);
      }
    },
  },
  { command: 'master list', args: () => [], shows: /ID +ENVS[\s\S]*-salt +prod/, reads: true },
  {
    command: 'master set',
    args: (m) => [m.own('salt'), '--env', 'prod', '--env', 'stage', '--on-unknown-minion', 'refuse'],
    shows: /envs +prod, stage[\s\S]*refuse/,
  },
  {
    command: 'master enrol',
    args: (m) => [m.own('salt'), '--expires-in', '600'],
    shows: /id +[\w-]+[\s\S]*token +cole_\S{40}/,
  },
  {
    command: 'master token create',
    args: (m) => [m.own('salt'), '--token-lifetime', '3600'],
    shows: /jti +[\w-]+[\s\S]*token +\S{40}/,
    keep: { jti: 'jti' },
  },
  { command: 'master get', args: (m) => [m.own('salt')], shows: /token_ids +\S+, \S+/, reads: true },
  {
    command: 'master token delete',
    args: (m) => [m.own('salt'), m.kept.jti ?? '', ...yesIn(m)],
    types: YES,
    shows: /jti/,
  },
  {
    command: 'service create',
    args: (m) => [
      ...[m.own('shop'), '--type', `order.placed=${path.join(m.dir, '..', 'order.yaml')}`],
      ...['--type', 'order.paid'],
    ],
    shows: /types +.*order\.placed/,
  },
  {
    command: 'service list',
    args: () => [],
    shows: /TYPES[\s\S]*-shop +order\.placed, order\.paid/,
    reads: true,
  },
  {
    command: 'service enrol',
    args: (m) => [m.own('shop'), '--expires-in', '600'],
    shows: /token +cole_\S{40}/,
    keep: { enrolment: 'id' },
  },
  { command: 'service get', args: (m) => [m.own('shop')], shows: /enrolment_ids +\S{36}/, reads: true },
  {
    command: 'service unenrol',
    args: (m) => [m.own('shop'), m.kept.enrolment ?? '', ...yesIn(m)],
    types: YES,
    shows: /id +\S{36}/,
  },
  { command: 'service set', args: (m) => [m.own('shop'), '--clear-types'], shows: /types +-/ },
  { command: 'service delete', args: (m) => [m.own('shop'), ...yesIn(m)], types: YES, shows: /id +\S+-shop/ },
  {
    command: 'inventory send',
    args: (m) => [m.own('salt'), 'web-2', '--file', path.join(m.dir, '..', 'inventory.yaml')],
    shows: /minion_id +web-2[\s\S]*state +pending/,
  },
  {
    command: 'inventory list',
    args: (m) => ['--master', m.own('salt'), '--state', 'pending'],
    shows: /MASTER +MINION +STATE[\s\S]*-salt +web-2 +pending/,
    reads: true,
  },
  {
    command: 'inventory get',
    args: (m) => [m.own('salt'), 'web-2'],
    shows: /facts +\{"os":\{"name":"Debian"\}\}/,
    reads: true,
  },
  {
    command: 'inventory delete',
    args: (m) => [m.own('salt'), 'web-2', ...yesIn(m)],
    types: YES,
    shows: /web-2/,
  },
  {
    command: 'minion set',
    args: (m) => [m.own('salt'), 'web-1', '--collection', m.own('shop'), '--collection', m.own('east')],
    shows: /collections +\w+-shop, \w+-east/,
  },
  { command: 'minion set', args: (m) => [m.own('salt'), 'web-1'], shows: /collections +-\n/ },
  { command: 'minion get', args: (m) => [m.own('salt'), 'web-1'], shows: /id +web-1/, reads: true },
  { command: 'minion list', args: (m) => [m.own('salt')], shows: /MASTER[\s\S]*web-1/, reads: true },
  {
    command: 'minion delete',
    args: (m) => [m.own('salt'), 'web-1', ...yesIn(m)],
    types: YES,
    shows: /web-1/,
  },
  { command: 'master delete', args: (m) => [m.own('salt'), ...yesIn(m)], types: YES, shows: /-salt/ },
  { command: 'collection delete', args: (m) => [m.own('east'), ...yesIn(m)], types: YES, shows: /-east/ },
  {
    command: 'token create',
    args: (m) => [
      m.own('ann'),
      '--role',
      'viewer',
      '--scope',
      'editor:collections=shop;name_prefixes=app_,web_',
    ],
    shows: /sub +\w+-ann[\s\S]*token +col_/,
    keep: { token: 'id' },
  },
  { command: 'token list', args: () => [], shows: /USER +ROLES[\s\S]*-ann +viewer/, reads: true },
  { command: 'token delete', args: (m) => [m.kept.token ?? '', ...yesIn(m)], types: YES, shows: /id/ },
  { command: 'whoami', args: () => [], shows: /bootstrap-admin/, reads: true },
  { command: 'limits', args: () => [], shows: /valueBytes +262144/, reads: true },
  {
    command: 'revocation create',
    args: (m) => ['--user', m.own('eve')],
    shows: /sub +\w+-eve/,
    keep: { revocation: 'id' },
  },
  { command: 'key list', args: () => [], shows: /KID[\s\S]*active/, reads: true },
  { command: 'key rotate', args: () => ['pillars'], shows: /kid +pillars-v/ },
  { command: 'key rewrap', args: () => ['pillars', '--wait'], shows: /left +0/ },
  {
    command: 'key min-version',
    args: (m) => ['pillars', '1', ...yesIn(m)],
    types: YES,
    shows: /min_version +1/,
  },
  {
    command: 'key destroy',
    args: (m) => ['pillars', '1', ...yesIn(m)],
    types: YES,
    code: 5,
    shows: /may still open|is active/,
    json: 'none',
  },
  { command: 'key undestroy', args: () => ['pillars', '1'], code: 5, shows: /not destroyed/, json: 'none' },
  { command: 'revocation list', args: () => [], shows: /USER[\s\S]*-eve/, reads: true },
  {
    command: 'revocation delete',
    args: (m) => [m.kept.revocation ?? '', ...yesIn(m)],
    types: YES,
    shows: /id/,
  },
];
