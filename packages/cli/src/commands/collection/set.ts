import { usageError } from '../../exit-codes.ts';
import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const collectionSet = defineCommand({
  path: 'collection set',
  summary: 'rename a collection, or move it in the tree',
  args: { id: { help: 'collection' } },
  options: {
    name: { value: 'NAME', help: 'what people call it from now on' },
    parent: { value: 'ID', help: 'the collection it moves below' },
    top: { help: 'move it to the top' },
    ...IF_MATCH_OPTION,
  },
  examples: [
    ['collection set shop --name Shops', 'another name'],
    ['collection set shop-east --top', 'to the top'],
  ],
  async run(session, { args, options }) {
    const { name, parent, top } = options;
    if (name === undefined && parent === undefined && !top)
      throw usageError('nothing to change: --name, --parent or --top');
    if (parent !== undefined && top) throw usageError('give --parent or --top, not both');
    const api = session.api();
    const path = `/collections/${encodeURIComponent(args.id)}`;
    const body = {
      ...(name === undefined ? {} : { name }),
      ...(parent === undefined && !top ? {} : { parent_id: parent ?? null }),
    };
    const answer = await api.call('PATCH', path, body, await ifMatch(api, path, options['if-match']));
    await show(session, answer.value, allFields);
  },
});
