import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const templateGet = defineCommand({
  path: 'template get',
  summary: 'show a task template with its JSON Schema',
  args: { id: { help: 'template' } },
  options: {
    'with-defaults': { help: 'what you saved stands as defaults in the schema; secrets are only named' },
  },
  examples: [
    ['template get deploy', 'as it is'],
    ['template get deploy --with-defaults', 'with your defaults in it'],
  ],
  async run(session, { args, options }) {
    const id = encodeURIComponent(args.id);
    const path = options['with-defaults'] ? `/tasks/template/${id}/with-defaults` : `/tasks/templates/${id}`;
    const { value } = await session.api().call('GET', path);
    await show(session, value, allFields);
  },
});
