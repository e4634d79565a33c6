import type { Value } from '@colonnade/value';
import { LIMIT_OPTION, showList } from '../shared/pages.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../shared/target.ts';
import { allFields, asObject, column, show, VALUE_COLUMN } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';

const COLUMNS = [
  column('CLOCK', 'clock', 'right'),
  column('AT', 'at'),
  column('BY', 'by'),
  column('WHAT', 'op'),
  column('NAME', 'name'),
  {
    title: 'VALUE',
    of: (row: Value) => (asObject(row).purged === true ? '(purged)' : VALUE_COLUMN.of(row)),
  },
];

export const history = defineCommand({
  path: 'history',
  summary: 'show what a pillar was, oldest first',
  details: 'Also of a deleted pillar, by its pid. Secrets are masked; what was purged is gone.',
  args: PILLAR_ARGUMENT,
  options: {
    ...TARGET_OPTIONS,
    clock: { value: 'N', help: 'only the version of this clock' },
    ...LIMIT_OPTION,
  },
  examples: [
    ['history motd --root --clock 42', 'one version'],
    ['history motd --root', 'every version'],
    ['history 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --limit 5', 'the first five, also of a deleted pillar'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const pid = await resolvePid(api, args.pillar, options);
    if (options.clock !== undefined) {
      const { value } = await api.call('GET', `${pathOf(pid)}/versions/${encodeURIComponent(options.clock)}`);
      return await show(session, value, allFields);
    }
    await showList(session, `${pathOf(pid)}/versions`, { limit: options.limit }, COLUMNS);
  },
});
