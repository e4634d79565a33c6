import { after, before, describe, test } from 'node:test';
import { stackForTests, type TestStack, writeEstate } from '../../../test/support/stack.ts';
import { PILLAR_STEPS } from './steps/pillars.ts';
import { bundledCli, type Cli, createMemory, environmentOf, type Memory, MODES, runStep } from './support.ts';

describe('commands on pillars', () => {
  let stack: TestStack;
  let cli: Cli;
  before(async () => {
    stack = await stackForTests();
    await stack.addMaster('salt');
    await writeEstate(stack.api).collection('shop');
    await writeEstate(stack.api).minion('salt', 'web-1', ['shop']);
    cli = await bundledCli(environmentOf(stack));
  });
  after(async () => {
    await cli?.[Symbol.asyncDispose]();
    await stack?.[Symbol.asyncDispose]();
  });

  for (const mode of MODES) {
    describe(`in a ${mode}`, () => {
      let memory: Memory;
      before(async () => {
        memory = await createMemory(cli, mode);
      });
      for (const step of PILLAR_STEPS) test(step.command, () => runStep(cli, step, memory));
    });
  }
});
