import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const collectionDelete = defineCommand({
  path: 'collection delete',
  summary: 'delete a collection that has no children, members or pillars',
  args: { id: { help: 'collection' } },
  options: { ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['collection delete shop-east --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/collections/${encodeURIComponent(args.id)}`;
    await confirm(`delete collection ${args.id}`, options.yes);
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('DELETE', path, undefined, headers);
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
