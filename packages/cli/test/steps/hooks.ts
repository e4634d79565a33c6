import type { Step } from '../support.ts';

export const HOOK = '20-say';
const MINION = ['--master', 'salt', '--minion', 'web-1'];

/** Hooks and generations; the test has made a master `salt` with a minion `web-1`, a hook, and two generations. */
export const HOOK_STEPS: readonly Step[] = [
  {
    command: 'hooks list',
    args: () => [],
    shows: /node-post-acceptance +no +20-say +10-example\.disabled, README\.md/,
    reads: true,
  },
  {
    command: 'hooks list',
    args: () => ['node-post-acceptance'],
    shows:
      /hook 20-say +warned of after 30000 ms, killed after 9000 ms[\s\S]*RUDDER_NODE_ID +id of the minion/,
    reads: true,
  },
  {
    command: 'hooks test',
    args: () => ['node-post-acceptance', ...MINION],
    shows: /would run +20-say[\s\S]*RUDDER_NODE_HOSTNAME +web-1\.example\s+RUDDER_NODE_ID +web-1/,
    reads: true,
  },
  {
    command: 'hooks test',
    args: () => ['node-post-acceptance', '--set', 'RUDDER_NODE_ID=x'],
    shows: /missing for node-post-acceptance: RUDDER_NODE_HOSTNAME/,
    code: 7,
    reads: true,
    json: 'none',
  },
  {
    command: 'hooks run',
    args: () => ['node-post-acceptance', ...MINION],
    shows: /status +warning[\s\S]*hook 20-say +warning, exit code 33, \d+ ms: hello web-1/,
  },
  {
    command: 'hooks run',
    args: () => ['node-post-acceptance', ...MINION, '--set', 'RUDDER_AGENT_TYPE=refuse'],
    shows: /status +error[\s\S]*hook 20-say +error, exit code 3/,
    code: 8,
  },
  {
    command: 'hooks history',
    args: () => ['--event', 'node-post-acceptance', '--limit', '5'],
    shows:
      /node-post-acceptance +error +20-say \(error: exit code 3\) +\/hooks\/node-post-acceptance by bootstrap-admin/,
    reads: true,
  },
  { command: 'generation run', args: () => [], shows: /asked/ },
  {
    command: 'generation list',
    args: () => ['--limit', '500'],
    shows: /UPDATED[\s\S]*finished +1 +0/,
    reads: true,
  },
  {
    command: 'generation get',
    args: (m) => [m.kept.generation ?? ''],
    shows: /updated_count +1[\s\S]*updated +salt\/web-1/,
    reads: true,
  },
  {
    command: 'minion diff',
    args: () => ['salt', 'web-2'],
    shows: /before since[\s\S]*db_password +added \(secret\)[\s\S]*motd +changed "one" -> "two"/,
    reads: true,
  },
];
