import { after, before, describe, test } from 'node:test';
import { stackForTests, type TestStack } from '../../../test/support/stack.ts';
import { ESTATE_STEPS } from './steps/estate.ts';
import { bundledCli, type Cli, createMemory, environmentOf, type Memory, MODES, runStep } from './support.ts';

describe('commands on the estate', () => {
  let stack: TestStack;
  let cli: Cli;
  before(async () => {
    stack = await stackForTests();
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
      for (const step of ESTATE_STEPS) test(step.command, () => runStep(cli, step, memory));
    });
  }
});
