import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { servicePath } from './options.ts';

export const serviceDelete = defineCommand({
  path: 'service delete',
  summary: 'delete a service; its identities end at once',
  args: { id: { help: 'service' } },
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['service delete shop --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = servicePath(args.id);
    await confirm(`delete service ${args.id}`, options.yes);
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('DELETE', path, undefined, headers);
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
