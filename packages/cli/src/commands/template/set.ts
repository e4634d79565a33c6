import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { readDocument } from '../../shared/named-values.ts';
import { allFields, asObject, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const templateSet = defineCommand({
  path: 'template set',
  summary: 'change the name or the schema of a task template',
  args: { id: { help: 'template' } },
  options: {
    name: { value: 'NAME', help: 'what people call it from now on' },
    schema: { value: 'FILE', help: 'its JSON Schema, YAML or JSON; "-": standard input' },
    ...IF_MATCH_OPTION,
  },
  examples: [['template set deploy --schema deploy.json', 'another schema']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/tasks/templates/${encodeURIComponent(args.id)}`;
    const now = await api.call('GET', path);
    const { name, schema } = asObject(now.value);
    const body = {
      name: options.name ?? name ?? args.id,
      schema: options.schema === undefined ? (schema ?? null) : await readDocument(options.schema),
    };
    const etag = options['if-match'] ?? now.headers.get('etag') ?? undefined;
    const answer = await api.call('PUT', path, body, await ifMatch(api, path, etag));
    await show(session, answer.value, allFields);
  },
});
