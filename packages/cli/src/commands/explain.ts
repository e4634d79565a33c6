import { explanationLines } from '../shared/explanation.ts';
import { queryOf } from '../shared/pages.ts';
import { asObject } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';

export const explain = defineCommand({
  path: 'explain',
  summary: 'show what a minion gets, and which scope each key comes from',
  details: 'Asked of a merger, as the master’s own request would be. Secrets are masked.',
  args: { minion: { help: 'minion' } },
  options: {
    master: { value: 'ID', required: true, help: 'its logical master' },
    pillarenv: { value: 'ENVS', help: 'environments, separated by commas (default: auto)' },
    name: { value: 'NAME', help: 'only this key' },
    'omit-values': { help: 'no values: also a pillar too large for one answer can be explained' },
  },
  examples: [
    ['explain shop-1.example --master salt-east', 'as a tree'],
    ['colonnade explain shop-1.example --master salt-east --json | jq .keys[].name', 'for a program'],
  ],
  async run(session, { args, options }) {
    const { master, pillarenv, name } = options;
    const path = `/explain${queryOf({ master, minion_id: args.minion, pillarenv, values: options['omit-values'] ? 'omit' : undefined })}`;
    const { value } = await session.api().call('GET', path);
    if (session.json) return await session.out.json(value ?? null);
    for (const line of explanationLines(asObject(value), name)) await session.out.line(line);
  },
});
