import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS } from '../minion/path.ts';
import { inventoryPath } from './path.ts';

export const inventoryDelete = defineCommand({
  path: 'inventory delete',
  summary: 'delete the inventory of a minion: one that is pending is refused',
  details: 'It is pending again when its inventory is sent again.',
  args: MINION_ARGUMENTS,
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['inventory delete salt-east shop-1.example --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = inventoryPath(args);
    await confirm(`delete the inventory of ${args.id}`, options.yes);
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('DELETE', path, undefined, headers);
    await show(session, answer.value ?? { minion_id: args.id }, allFields);
  },
});
