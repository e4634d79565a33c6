import { after, before, describe } from 'node:test';
import { stackForTests, type TestStack, writeEstate } from '../../../test/support/stack.ts';
import { PILLAR_STEPS } from './steps/pillars.ts';
import { bundledCli, type Cli, environmentOf, testSteps } from './support.ts';

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

  testSteps(() => cli, PILLAR_STEPS);
});
