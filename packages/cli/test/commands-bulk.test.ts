import { after, before, describe } from 'node:test';
import { stackForTests, writeEstate } from '../../../test/support/stack.ts';
import { BULK_STEPS } from './steps/bulk.ts';
import { bundledCli, type Cli, environmentOf, testSteps } from './support.ts';

describe('commands on the estate as a whole', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  before(async () => {
    const stack = owned.use(await stackForTests());
    const write = writeEstate(stack.api);
    await write.pillar({ tgt_type: 'root' }, 'motd', 'hello');
    cli = owned.use(await bundledCli(environmentOf(stack)));
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, BULK_STEPS);
});
