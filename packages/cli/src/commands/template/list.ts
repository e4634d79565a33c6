import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  column('NAME', 'name'),
  column('BY', 'updated_by'),
  column('CHANGED', 'updated_at'),
];

export const templateList = defineCommand({
  path: 'template list',
  summary: 'list task templates',
  options: LIMIT_OPTION,
  examples: [['template list', 'all of them']],
  run: (session, { options }) => showList(session, '/tasks/templates', options, COLUMNS),
});
