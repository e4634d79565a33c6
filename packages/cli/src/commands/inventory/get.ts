import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS } from '../minion/path.ts';
import { inventoryPath } from './path.ts';

export const inventoryGet = defineCommand({
  path: 'inventory get',
  summary: 'show the inventory of a minion',
  args: MINION_ARGUMENTS,
  examples: [['inventory get salt-east shop-1.example', 'what it tells of itself']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', inventoryPath(args));
    await show(session, value, allFields);
  },
});
