import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const tokenDelete = defineCommand({
  path: 'token delete',
  summary: 'delete an API token; it is refused from the next request on',
  args: { id: { help: 'id of the token, not the token' } },
  options: { ...YES_OPTION },
  examples: [['token delete 5f1c9b7e02d4a683 --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/tokens/${encodeURIComponent(args.id)}`;
    await confirm(`delete token ${args.id}`, options.yes);
    const answer = await api.call('DELETE', path);
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
