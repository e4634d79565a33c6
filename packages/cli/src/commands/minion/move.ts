import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS, minionPath } from './path.ts';

export const minionMove = defineCommand({
  path: 'minion move',
  summary: 'move a minion with its pillars to another master; its secrets are sealed anew',
  args: { ...MINION_ARGUMENTS, to: { help: 'the master it goes to' } },
  options: IF_MATCH_OPTION,
  examples: [['minion move salt-east shop-1.example salt-west', 'to another master']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = minionPath(args);
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('POST', `${path}/move`, { master: args.to }, headers);
    await show(session, answer.value, allFields);
  },
});
