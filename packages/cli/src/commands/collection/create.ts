import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const collectionCreate = defineCommand({
  path: 'collection create',
  summary: 'create a collection',
  details: 'A child has its parent’s owner, a root the caller.',
  args: { id: { help: 'its id; it cannot be changed' } },
  options: {
    name: { value: 'NAME', help: 'what people call it (default: the id)' },
    parent: { value: 'ID', help: 'the collection above it' },
    owner: { value: 'USER', help: 'owner of a root, where it is not the caller' },
  },
  examples: [
    ['collection create shop --name "Web shops"', 'at the top'],
    ['collection create shop-east --parent shop', 'below another'],
  ],
  async run(session, { args, options }) {
    const { parent, owner, name } = options;
    const body = {
      ...{ id: args.id, name: name ?? args.id },
      ...(parent === undefined ? {} : { parent_id: parent }),
      ...(owner === undefined ? {} : { owner }),
    };
    const answer = await session.api().call('POST', '/collections', body);
    await show(session, answer.value, allFields);
  },
});
