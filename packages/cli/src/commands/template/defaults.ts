import type { ValueObject } from '@colonnade/value';
import { NAMED_VALUES_OPTIONS, readNamedValues } from '../../shared/named-values.ts';
import { asList, asObject, PILLAR_COLUMNS } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const templateDefaults = defineCommand({
  path: 'template defaults',
  summary: 'show your defaults of a task template, or change them',
  details: 'Saves the values named and removes those of --remove; the others stay. Secrets are masked.',
  args: { id: { help: 'template' } },
  options: {
    ...NAMED_VALUES_OPTIONS,
    remove: { value: 'NAME', repeat: true, help: 'a default that goes; several times' },
  },
  examples: [
    ['template defaults deploy', 'what you saved'],
    ['template defaults deploy --values defaults.yaml --remove version', 'change some'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/tasks/template/${encodeURIComponent(args.id)}/defaults`;
    const pillars = await readNamedValues(options);
    const changes = pillars.length > 0 || options.remove.length > 0;
    const body: ValueObject = {
      pillars,
      ...(options.remove.length === 0 ? {} : { remove: [...options.remove] }),
    };
    const { value } = changes ? await api.call('PUT', path, body) : await api.call('GET', path);
    if (session.json) return await session.out.json(value ?? null);
    await session.out.table(PILLAR_COLUMNS).add(asList(asObject(value).items));
  },
});
