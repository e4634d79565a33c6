import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const collectionRuleDelete = defineCommand({
  path: 'collection rule delete',
  summary: 'take the rule of a collection away, and with it its members by rule',
  args: { id: { help: 'collection' } },
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['collection rule delete debian --yes', 'without being asked']],
  async run(session, { args, options }) {
    await confirm(`take the rule of ${args.id} away, and its members by rule`, options.yes);
    const api = session.api();
    const path = `/collections/${encodeURIComponent(args.id)}`;
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('DELETE', `${path}/rule`, undefined, headers);
    await show(session, answer.value, allFields);
  },
});
