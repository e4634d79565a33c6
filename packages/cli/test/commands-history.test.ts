import { after, before, describe } from 'node:test';
import { stackForTests, writeEstate } from '../../../test/support/stack.ts';
import { HISTORY_STEPS } from './steps/history.ts';
import { bundledCli, type Cli, environmentOf, MODES, testSteps } from './support.ts';

describe('commands on the history', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  before(async () => {
    const stack = owned.use(await stackForTests());
    for (const master of ['salt', 'west']) await stack.addMaster(master);
    const write = writeEstate(stack.api);
    await write.collection('shop');
    for (const mode of [...MODES, 'all']) await write.minion('salt', `${mode}-mover`, []);
    cli = owned.use(await bundledCli(environmentOf(stack)));
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, HISTORY_STEPS);
});
