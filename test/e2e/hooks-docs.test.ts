import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fromPlain } from '@colonnade/value';
import { bundledCli, type Cli, environmentOf } from '../../packages/cli/test/support.ts';
import { HOOK_EVENT_NAMES } from '../../services/hook-runner/src/run/hook-events.ts';
import { stackForTests, type TestStack, writeEstate } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

type Example = { event: string; name: string; script: string; args: string[]; says: string };

/** Every section of the page that is named like an event: a script, a command, and what the script says. */
function readExamples(): Example[] {
  const text = readFileSync(new URL('../../docs/hooks.md', import.meta.url), 'utf8');
  const section =
    /^## ([a-z-]+)\n\n.*: `([^`]+)`\n\n```sh\n([\s\S]*?)\n```\n\n```console\n\$ colonnade (.*)\n([\s\S]*?)\n```$/gmu;
  return [...text.matchAll(section)].map(
    ([, event = '', name = '', script = '', command = '', says = '']) => {
      return { event, name, script, args: command.split(' '), says };
    },
  );
}

describe('the examples of docs/hooks.md', () => {
  const owned = new AsyncDisposableStack();
  const examples = readExamples();
  let world: TestStack;
  let cli: Cli;
  before(async () => {
    world = owned.use(await stackForTests({ env: { GENERATION_DEBOUNCE_MS: '50' } }));
    cli = owned.use(await bundledCli(environmentOf(world)));
    const estate = writeEstate(world.api);
    await world.addMaster('salt-east');
    await estate.minion('salt-east', 'shop-1.example', []);
    const facts = {
      os: { string: 'Debian GNU/Linux 13' },
      ips: ['192.0.2.7', '2001:db8::7'],
      roles: ['web'],
    };
    const inventory = { master: 'salt-east', minion_id: 'shop-1.example', ...facts };
    await world.api.call('POST', '/inventories', fromPlain(inventory));
    await estate.pillar({ tgt_type: 'root' }, 'motd', 'hello');
    const url = '/masters/salt-east/minions/shop-1.example/policies/diff';
    await waitFor('its policies', async () => {
      const answer = await world.api.send('GET', url);
      return JSON.stringify(answer.value ?? null, (_, v) => (typeof v === 'bigint' ? Number(v) : v)).includes(
        'motd',
      );
    });
  });
  /** A change may be compiled with one before it; a generation that then finds nothing new names nobody. */
  const updateLast = async () => {
    const ids = path.join(world.stack.dir, 'hooks', 'policy-generation-info', 'last-updated-nodeids');
    let changes = 0;
    const isNamed = () => readFileSync(ids, 'utf8').includes("RUDDER_NODE_IDS=('shop-1.example')");
    const changeUntilNamed = async () => {
      if (isNamed()) return true;
      changes += 1;
      await writeEstate(world.api).pillar({ tgt_type: 'root' }, `change_${changes}`, changes);
      return false;
    };
    await waitFor('a last generation that updated', changeUntilNamed, { limitMs: 30_000, everyMs: 1500 });
  };
  after(() => owned.disposeAsync());

  test('there is one for each event', () => {
    assert.deepEqual(examples.map(({ event }) => event).sort(), [...HOOK_EVENT_NAMES].sort());
  });

  for (const { event, name, script, args, says } of examples) {
    test(event, async () => {
      if (event === 'policy-generation-finished') await updateLast();
      const file = path.join(world.stack.hooksDir, event, name);
      await writeFile(file, `${script}\n`, { mode: 0o755 });
      const { code, stdout, stderr } = await cli.pipe([...args, '--json']);
      assert.equal(code, 0, stdout + stderr);
      const { results } = JSON.parse(stdout) as { results: { hook: string; message: string }[] };
      assert.equal(results.find(({ hook }) => hook === name)?.message, says, stdout);
    });
  }
});
