import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  column('NAME', 'name'),
  column('PARENT', 'parent_id'),
  column('OWNER', 'owner'),
  column('PILLARENV', 'pillarenv'),
];

export const collectionList = defineCommand({
  path: 'collection list',
  summary: 'list collections',
  options: LIMIT_OPTION,
  examples: [['collection list', 'all of them']],
  run: (session, { options }) => showList(session, '/collections', options, COLUMNS),
});
