import { after, before, describe } from 'node:test';
import { stackForTests, writeEstate } from '../../../test/support/stack.ts';
import { TASK_FILES, TASK_STEPS } from './steps/tasks.ts';
import { bundledCli, type Cli, environmentOf, privateFile, testSteps } from './support.ts';

describe('commands on templates and tasks', () => {
  const owned = new AsyncDisposableStack();
  let cli: Cli;
  before(async () => {
    const stack = owned.use(await stackForTests());
    await stack.addMaster('salt');
    const write = writeEstate(stack.api);

    await write.minion('salt', 'web-1', []);
    await write.pillar({ tgt_type: 'root' }, 'motd', 'hello');
    cli = owned.use(await bundledCli(environmentOf(stack)));
    for (const [name, text] of Object.entries(TASK_FILES)) await privateFile(cli.dir, name, text);
  });
  after(() => owned.disposeAsync());

  testSteps(() => cli, TASK_STEPS);
});
