import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fromPlain, toPlain } from '@colonnade/value';
import { stackForTests, type TestStack, writeEstate } from '../../../test/support/stack.ts';
import { waitFor } from '../../../test/support/wait-for.ts';
import { HOOK, HOOK_STEPS } from './steps/hooks.ts';
import { bundledCli, type Cli, environmentOf, testSteps } from './support.ts';

const script = `#!/bin/sh
# HOOK_KILL_TIMEOUT=9s
echo "hello $RUDDER_NODE_ID"
[ "$RUDDER_AGENT_TYPE" = refuse ] && exit 3
exit 33
`;

/** A minion with a generation of its own, which is kept; and one whose policies came about in two steps, untouched by the commands. */
async function prepare({ api, stack, addMaster }: TestStack): Promise<string> {
  const estate = writeEstate(api);
  await addMaster('salt');
  await estate.minion('salt', 'web-1', []);
  await api.call(
    'POST',
    '/inventories',
    fromPlain({ master: 'salt', minion_id: 'web-1', hostname: 'web-1.example' }),
  );
  const read = async (url: string) =>
    toPlain((await api.send('GET', url)).value ?? null) as Record<string, never>;
  const generation = await waitFor('a generation', async () => {
    const { items } = (await read('/generations')) as unknown as {
      items: { id: string; updated_count: number }[];
    };
    return items.find((one) => one.updated_count === 1)?.id;
  });
  const file = path.join(stack.hooksDir, 'node-post-acceptance', HOOK);
  await writeFile(file, script, { mode: 0o755 });
  return generation;
}

async function prepareDiff({ api }: TestStack): Promise<void> {
  const estate = writeEstate(api);
  const target = { tgt_type: 'minion', master: 'salt', minion_id: 'web-2' };
  await estate.minion('salt', 'web-2', []);
  const { pid } = await estate.pillar(target, 'motd', 'one');
  const names = async () => {
    const answer = await api.send('GET', '/masters/salt/minions/web-2/policies/diff');
    const { changes = [] } = toPlain(answer.value ?? null) as {
      changes?: { name: string; after?: unknown }[];
    };
    return changes.map(({ name, after: value }) => `${name}=${String(value)}`).join();
  };
  await waitFor('the first policies', async () => (await names()).includes('motd=one'));
  await estate.update(pid, 'two');
  await estate.pillar(target, 'db_password', 'S3CRET', true);
  await waitFor('the second policies', async () => /db_password=undefined,motd=two/u.test(await names()));
}

describe('commands for hooks and generations', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  let stack: TestStack;
  let generation: string;
  before(async () => {
    stack = owned.use(await stackForTests({ env: { GENERATION_DEBOUNCE_MS: '1000' } }));
    cli = owned.use(await bundledCli(environmentOf(stack)));
    generation = await prepare(stack);
    await prepareDiff(stack);
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, HOOK_STEPS, { kept: () => ({ generation }) });

  test('a viewer sees hooks, and runs none', async () => {
    const body = fromPlain({ sub: 'ann', roles: ['viewer'] });
    const { token } = toPlain((await stack.api.call('POST', '/tokens', body)).value ?? null) as {
      token: string;
    };
    const file = path.join(cli.dir, 'viewer');
    await writeFile(file, token, { mode: 0o600 });
    const env = { COLONNADE_TOKEN_FILE: file };
    assert.equal((await cli.pipe(['hooks', 'list'], { env })).code, 0);
    const refused = await cli.pipe(['hooks', 'run', 'policy-generation-started'], { env });
    assert.equal(refused.code, 4);
    assert.match(refused.stderr, /hook:run/u);
  });
});
