import { after, before, describe, test } from 'node:test';
import { stackForTests, writeEstate } from '../../../test/support/stack.ts';
import { TASK_FILES, TASK_STEPS } from './steps/tasks.ts';
import {
  bundledCli,
  type Cli,
  createMemory,
  environmentOf,
  type Memory,
  MODES,
  privateFile,
  runStep,
} from './support.ts';

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

  for (const mode of MODES) {
    describe(`in a ${mode}`, () => {
      let memory: Memory;
      before(async () => {
        memory = await createMemory(cli, mode);
      });
      for (const step of TASK_STEPS) test(step.command, () => runStep(cli, step, memory));
    });
  }
});
