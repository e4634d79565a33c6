import { after, before, describe, test } from 'node:test';
import { stackForTests, writeEstate } from '../../../test/support/stack.ts';
import { HISTORY_STEPS } from './steps/history.ts';
import { bundledCli, type Cli, createMemory, environmentOf, type Memory, MODES, runStep } from './support.ts';

describe('commands on the history', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  before(async () => {
    const stack = owned.use(await stackForTests());
    for (const master of ['salt', 'west']) await stack.addMaster(master);
    const write = writeEstate(stack.api);
    await write.collection('shop');
    for (const mode of MODES) await write.minion('salt', `${mode}-mover`, []);
    cli = owned.use(await bundledCli(environmentOf(stack)));
  });
  after(() => owned.disposeAsync());

  for (const mode of MODES) {
    describe(`in a ${mode}`, () => {
      let memory: Memory;
      before(async () => {
        memory = await createMemory(cli, mode);
      });
      for (const step of HISTORY_STEPS) test(step.command, () => runStep(cli, step, memory));
    });
  }
});
