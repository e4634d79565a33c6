import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('MASTER', 'master'),
  column('ID', 'id'),
  column('COLLECTIONS', 'collections'),
  column('REGISTERED BY', 'registered_by'),
];

export const minionList = defineCommand({
  path: 'minion list',
  summary: 'list the minions of a master',
  args: { master: { help: 'logical master' } },
  options: { collection: { value: 'ID', help: 'only direct members of this collection' }, ...LIMIT_OPTION },
  examples: [
    ['minion list salt-east', 'all of a master'],
    ['minion list salt-east --collection shop', 'the members of a collection'],
  ],
  run: (session, { args, options }) =>
    showList(session, `/masters/${encodeURIComponent(args.master)}/minions`, options, COLUMNS),
});
