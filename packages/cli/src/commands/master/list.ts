import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  column('ENVS', 'envs'),
  column('UNKNOWN MINIONS', 'on_unknown_minion'),
  column('TOKENS', 'token_ids'),
];

export const masterList = defineCommand({
  path: 'master list',
  summary: 'list logical masters',
  options: LIMIT_OPTION,
  examples: [['master list', 'all of them']],
  run: (session, { options }) => showList(session, '/masters', options, COLUMNS),
});
