import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { tempDir } from '../../../test/support/temp.ts';
import { prepareFolders } from '../src/prepare-folders.ts';
import { HOOK_EVENT_NAMES, HOOK_EVENTS } from '../src/run/hook-events.ts';
import { DEFAULT_IGNORED_SUFFIXES } from '../src/run/ignored-suffixes.ts';
import { listHooks } from '../src/run/list-hooks.ts';

const root = path.join(import.meta.dirname, '..', 'hooks.d');
const read = (...names: string[]) => readFileSync(path.join(root, ...names), 'utf8');

test('there is a folder for every event, and no other', () => {
  assert.deepEqual(readdirSync(root).sort(), [...HOOK_EVENT_NAMES].sort());
});

test('runners that start together make each folder once, whole, and leave nothing beside', async () => {
  await using dir = await tempDir('hooks');
  const hooksDir = path.join(dir.path, 'hooks.d');
  const made = await Promise.all([1, 2, 3].map(() => prepareFolders(hooksDir)));
  assert.deepEqual(made.flat().sort(), [...HOOK_EVENT_NAMES].sort());
  assert.deepEqual(readdirSync(hooksDir).sort(), [...HOOK_EVENT_NAMES].sort());
  for (const name of HOOK_EVENT_NAMES) {
    assert.deepEqual(readdirSync(path.join(hooksDir, name)), readdirSync(path.join(root, name)));
  }
});

/** Seed 002. */
test('the parameters of node-pre-deletion are those of Rudder', () => {
  assert.deepEqual(Object.keys(HOOK_EVENTS['node-pre-deletion'].parameters), [
    'RUDDER_NODE_ID',
    'RUDDER_NODE_HOSTNAME',
    'RUDDER_NODE_POLICY_SERVER_ID',
    'RUDDER_AGENT_TYPE',
    'RUDDER_POLICIES_DIRECTORY_CURRENT',
    'RUDDER_POLICIES_DIRECTORY_NEW',
    'RUDDER_POLICIES_DIRECTORY_ARCHIVE',
    'RUDDER_NODE_ROLES',
  ]);
});

/** Seed 002: 2 s and 20 s for what runs for each node of a generation, 30 s and 5 min for all others. */
test('how long hooks may take that state nothing', () => {
  const quick = HOOK_EVENT_NAMES.filter((name) => HOOK_EVENTS[name].timeouts.killMs !== 300_000);
  assert.deepEqual(quick, ['policy-generation-node-ready', 'policy-generation-node-finished']);
  for (const name of HOOK_EVENT_NAMES) {
    const wanted = quick.includes(name)
      ? { warnMs: 2000, killMs: 20_000 }
      : { warnMs: 30_000, killMs: 300_000 };
    assert.deepEqual(HOOK_EVENTS[name].timeouts, wanted, name);
  }
});

for (const name of HOOK_EVENT_NAMES) {
  describe(name, () => {
    const { parameters, timeouts } = HOOK_EVENTS[name];

    test('its README has its parameters and no others, and its timeouts', () => {
      const readme = read(name, 'README.md');
      for (const [variable, meaning] of Object.entries(parameters)) {
        assert.ok(readme.includes(`| \`${variable}\` | ${meaning} |`), variable);
      }
      assert.equal(readme.match(/^\| `[A-Z_]+` \|/gmu)?.length, Object.keys(parameters).length);
      const wanted = timeouts.killMs === 20_000 ? /2 seconds .* 20 seconds/u : /30 seconds .* 5 minutes/u;
      assert.match(readme, wanted);
    });

    test('its example is off, is a script, and uses only what its event gives', async () => {
      const { hooks, ignored } = await listHooks(path.join(root, name), DEFAULT_IGNORED_SUFFIXES);
      assert.deepEqual(
        hooks.filter((hook) => hook.name.includes('example')),
        [],
      );
      assert.ok(ignored.some((one) => one.name === '10-example.disabled' && one.why === 'suffix'));
      const script = read(name, '10-example.disabled');
      execFileSync('bash', ['-n'], { input: script });
      for (const [variable] of script.matchAll(/\b(?:RUDDER|COLONNADE)_[A-Z_]+/gu)) {
        assert.ok(Object.hasOwn(parameters, variable) || variable === 'RUDDER_NODE_IDS', variable);
      }
    });
  });
}
