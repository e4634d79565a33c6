import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const taskDelete = defineCommand({
  path: 'task delete',
  summary: 'delete a task that has ended, with its pillars',
  args: { id: { help: 'task' } },
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['task delete 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/tasks/${encodeURIComponent(args.id)}`;
    await confirm(`delete task ${args.id} with its pillars`, options.yes);
    const answer = await api.call('DELETE', path, undefined, await ifMatch(api, path, options['if-match']));
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
