import { readDocument } from '../../shared/named-values.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const templateCreate = defineCommand({
  path: 'template create',
  summary: 'make a task template',
  args: { id: { help: 'its id; it cannot be changed' } },
  options: {
    name: { value: 'NAME', help: 'what people call it (default: the id)' },
    schema: { value: 'FILE', required: true, help: 'its JSON Schema, YAML or JSON; "-": standard input' },
  },
  examples: [['template create deploy --name "Deploy a version" --schema deploy.json', 'from a file']],
  async run(session, { args, options }) {
    const body = { id: args.id, name: options.name ?? args.id, schema: await readDocument(options.schema) };
    const { value } = await session.api().call('POST', '/tasks/templates', body);
    await show(session, value, allFields);
  },
});
