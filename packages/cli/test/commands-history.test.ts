import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { LIMITS } from '@colonnade/contracts';
import { stackForTests, writeEstate } from '../../../test/support/stack.ts';
import { HISTORY_STEPS } from './steps/history.ts';
import { bundledCli, type Cli, environmentOf, MODES, testSteps } from './support.ts';

describe('commands on the history', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  let write: ReturnType<typeof writeEstate>;
  before(async () => {
    const stack = owned.use(await stackForTests());
    for (const master of ['salt', 'west']) await stack.addMaster(master);
    write = writeEstate(stack.api);
    await write.collection('shop');
    const movers = [...MODES, 'all'].map((mode) => `${mode}-mover`);
    for (const name of [...movers, 'stays']) await write.minion('salt', name, []);
    cli = owned.use(await bundledCli(environmentOf(stack)));
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, HISTORY_STEPS);

  test('a scope of more pillars than one transaction takes is restored in parts', async () => {
    const scope = 'minion_id:stays;master:salt';
    const on = { tgt_type: 'minion', minion_id: 'stays', master: 'salt' };
    const moment = await cli.pipe(['pillar', 'create', 'moment', '--root', '--value', '1', '--json']);
    const { clock } = JSON.parse(moment.stdout) as { clock: number };
    const count = LIMITS.batchPillars + 3;
    await Promise.all(Array.from({ length: count }, (_, i) => write.pillar(on, `many-${i}`, 1n)));
    const args = ['scope', 'restore', scope, '--at', String(clock)];
    const shown = await cli.pipe([...args, '--dry-run']);
    assert.equal(shown.stdout.match(/^ *delete /gmu)?.length, count, shown.stderr);
    const done = await cli.pipe([...args, '--yes', '--json']);
    assert.equal(done.code, 0, done.stderr);
    const all = JSON.parse(done.stdout) as { delete: unknown[]; next_cursor: null };
    assert.deepEqual([all.delete.length, all.next_cursor], [count, null]);
    const again = await cli.pipe([...args, '--yes', '--json']);
    assert.equal((JSON.parse(again.stdout) as typeof all).delete.length, 0, 'what is as it was is no change');
  });

  test('a pillar tree with "*" is told to reach the minions of other masters too', async () => {
    const tree = path.join(cli.dir, 'tree');
    await mkdir(tree);
    await writeFile(path.join(tree, 'top.sls'), "base:\n  '*':\n    - all\n");
    await writeFile(path.join(tree, 'all.sls'), 'from_tree: 1\n');
    const told = await cli.pipe(['import', '--salt-tree', tree, '--master', 'salt', '--dry-run']);
    assert.equal(told.code, 0, told.stderr);
    assert.match(told.stderr, /other masters \(west/u);
    const own = ['--collection', '*=shop', '--dry-run'];
    const quiet = await cli.pipe(['import', '--salt-tree', tree, '--master', 'salt', ...own]);
    assert.deepEqual([quiet.code, quiet.stderr.includes('other masters')], [0, false], quiet.stderr);
  });
});
