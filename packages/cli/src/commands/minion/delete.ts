import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS, minionPath } from './path.ts';

export const minionDelete = defineCommand({
  path: 'minion delete',
  summary: 'delete a minion that has no pillars',
  args: MINION_ARGUMENTS,
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['minion delete salt-east shop-1.example --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = minionPath(args);
    await confirm(`delete minion ${args.id}`, options.yes);
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('DELETE', path, undefined, headers);
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
