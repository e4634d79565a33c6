import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const templateDelete = defineCommand({
  path: 'template delete',
  summary: 'delete a task template, with everybody’s defaults',
  args: { id: { help: 'template' } },
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['template delete deploy --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/tasks/templates/${encodeURIComponent(args.id)}`;
    await confirm(`delete template ${args.id}, with everybody's defaults`, options.yes);
    const answer = await api.call('DELETE', path, undefined, await ifMatch(api, path, options['if-match']));
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
