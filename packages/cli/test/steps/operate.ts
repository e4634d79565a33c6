import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Memory, Step } from '../support.ts';

const YES = [{ expect: 'Type "yes"', send: 'yes\r' }];
const yesIn = ({ mode }: Memory) => (mode === 'pipe' ? ['--yes'] : []);
/** Profiles of the mode's own, and none of the variables that beat them. */
const OWN_HOME = ({ dir }: Memory) => ({
  ...{ XDG_CONFIG_HOME: path.join(dir, 'config'), COLONNADE_URL: '', COLONNADE_TOKEN_FILE: '' },
});

/** What an operator does beside the estate: profiles, status, the audit log, the stores. */
export const OPERATE_STEPS: readonly Step[] = [
  {
    command: 'login',
    args: (m) => ['--url', m.kept.url ?? '', '--token-file', m.kept.tokenFile ?? '', '--profile', 'main'],
    env: OWN_HOME,
    shows: /profile +main/,
    async after({ dir }) {
      const file = path.join(dir, 'config', 'colonnade', 'profiles.json');
      assert.equal((await stat(file)).mode & 0o777, 0o600);
    },
  },
  { command: 'profile list', args: () => [], env: OWN_HOME, shows: /\* +main +http/, reads: true },
  { command: 'profile use', args: () => ['main'], env: OWN_HOME, shows: /main/ },
  { command: 'logout', args: () => [], env: OWN_HOME, shows: /forgotten/ },
  {
    command: 'profile delete',
    args: (m) => ['main', ...yesIn(m)],
    env: OWN_HOME,
    types: YES,
    shows: /removed/,
  },
  { command: 'completion', args: () => ['bash'], shows: /complete -F _colonnade colonnade/, reads: true },
  {
    command: 'status',
    args: () => [],
    shows: /audit-sink +0\.1\.0[\s\S]*pillar-api +0\.1\.0[\s\S]*AUDIT[\s\S]*AUDIT\/file +\d+/,
    reads: true,
  },
  {
    command: 'bus creds',
    args: ({ dir }) => ['--dir', path.join(dir, 'nats')],
    shows: /hook-runner +U[A-Z2-7]{55} +\S+hook-runner\.nk/,
    reads: true,
    async after({ dir }) {
      const at = (name: string) => path.join(dir, 'nats', name);
      assert.equal((await stat(at('operator.nk'))).mode & 0o777, 0o600);
      assert.match(await readFile(at('nkeys.conf'), 'utf8'), /^NATS_NKEY_OPERATOR: U[A-Z2-7]{55}$/mu);
    },
  },
  {
    command: 'audit find',
    args: () => ['--verb', 'create', '--resource', 'pillars', '--since', '1h'],
    shows: /ResponseComplete {2}bootstrap-admin {2}create {2}pillars\/root/,
    reads: true,
    json: 'lines',
  },
  {
    command: 'audit tail',
    args: () => ['--lines', '3', '--once', '--verb', 'create', '--user', 'bootstrap-admin'],
    shows: /bootstrap-admin {2}create/,
    reads: true,
    json: 'lines',
  },
  {
    command: 'audit verify',
    args: () => [],
    shows: /anchors that agree +\d+[\s\S]*first fault +none/,
    reads: true,
  },
  {
    command: 'audit dead',
    args: () => [],
    shows: /webhook {2}refused_by_webhook {2}HTTP 422 {2}seq 7 {2}poison-1/,
    reads: true,
    json: 'lines',
  },
  {
    command: 'events dead',
    args: () => ['--service', 'shop'],
    shows: /shop {2}schema_refused {2}data\.total: must be integer {2}[\w-]{36}/,
    reads: true,
    json: 'lines',
  },
  {
    command: 'audit replay',
    args: (m) => ['--verb', 'create', '--webhook-config', m.kept.webhook ?? '', '--qps', '1000'],
    shows: /sent +[1-9]/,
  },
  {
    command: 'store copy',
    args: (m) => [
      '--from',
      `sqlite://${m.kept.store}`,
      '--to',
      `sqlite://${path.join(m.dir, 'copy.sqlite')}`,
    ],
    shows: /pillars +[1-9]\d* rows/,
  },
  {
    command: 'adopt',
    args: (m) => ['--store', m.kept.mongo ?? '', '--by', 'ann', ...mongoUser(m), '--dry-run'],
    shows: /in place +yes[\s\S]*fit +1\n[\s\S]*confirm +[0-9a-f]{64}/,
    reads: true,
  },
  {
    command: 'adopt',
    args: (m) => ['--store', m.kept.mongo ?? '', '--by', 'ann', ...mongoUser(m), ...yesIn(m)],
    types: YES,
    shows: /adopted +1/,
  },
];

function mongoUser({ kept }: Memory): string[] {
  return kept.mongoUser === undefined
    ? []
    : ['--user', kept.mongoUser, '--password-file', kept.mongoPassword ?? ''];
}
