import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const masterDelete = defineCommand({
  path: 'master delete',
  summary: 'delete a master that has no minions, and revoke its tokens',
  details: 'Its Redis user stays: remove it with ACL DELUSER.',
  args: { id: { help: 'logical master' } },
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['master delete salt-west --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/masters/${encodeURIComponent(args.id)}`;
    await confirm(`delete master ${args.id}`, options.yes);
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('DELETE', path, undefined, headers);
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
