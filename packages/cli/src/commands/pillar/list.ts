import type { Value, ValueObject } from '@colonnade/value';
import { LIMIT_OPTION, showPages } from '../../shared/pages.ts';
import { readTarget, TARGET_OPTIONS } from '../../shared/target.ts';
import { asObject, column, PILLAR_COLUMNS } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const NAMED = [
  column('PID', 'pid'),
  column('NAME', 'name'),
  { title: 'SECRET', of: (row: Value) => (asObject(row).is_secret === true ? 'yes' : 'no') },
];

export const pillarList = defineCommand({
  path: 'pillar list',
  summary: 'list pillars',
  details:
    'Root and minion pillars; with --collection the names of that collection’s own. Secrets are masked.',
  options: { ...TARGET_OPTIONS, name: { value: 'NAME', help: 'only of this name' }, ...LIMIT_OPTION },
  examples: [
    ['pillar list', 'all pillars of the root and of minions'],
    ['pillar list --minion shop-1.example --master salt-east', 'those of one minion'],
    ['pillar list --collection shop', 'the names of a collection’s pillars'],
    ['colonnade pillar list --root --json | jq .items[].name', 'for a program'],
  ],
  async run(session, { options }) {
    const api = session.api();
    const { collection, name, limit } = options;
    if (collection !== undefined) {
      readTarget(options);
      const { value } = await api.call('GET', `/collections/${encodeURIComponent(collection)}`);
      if (session.json) return await session.out.json(value ?? null);
      const pillars = asObject(value).pillars as Value[];
      const wanted = pillars.filter((one) => name === undefined || asObject(one).name === name);
      await session.out.table(NAMED).add(wanted);
      if (asObject(value).pillars_more === true) session.out.note('there are more than are named here');
      return;
    }
    const ofMaster = options.minion === undefined ? options.master : undefined;
    const target = readTarget({ ...options, master: ofMaster === undefined ? options.master : undefined });
    const filter: ValueObject = {
      ...target,
      ...(name === undefined ? {} : { name }),
      ...(ofMaster === undefined ? {} : { master: ofMaster }),
    };
    await showPages(session, limit, PILLAR_COLUMNS, async (page) => {
      const paging: ValueObject = {
        limit: BigInt(page.limit),
        ...(page.cursor === undefined ? {} : { cursor: page.cursor }),
      };
      return (await api.call('POST', '/pillars/list', { ...filter, ...paging })).value;
    });
  },
});
