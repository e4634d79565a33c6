import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS, minionPath } from './path.ts';

export const minionGet = defineCommand({
  path: 'minion get',
  summary: 'show one minion',
  args: MINION_ARGUMENTS,
  examples: [['minion get salt-east shop-1.example', 'one minion']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', minionPath(args));
    await show(session, value, allFields);
  },
});
