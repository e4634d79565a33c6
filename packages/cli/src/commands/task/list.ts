import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  column('TEMPLATE', 'tpl_id'),
  column('STATE', 'state'),
  column('LIVE', 'live'),
  column('BY', 'created_by'),
  column('CREATED', 'created_at'),
  column('ENDED', 'ended_at'),
];

export const taskList = defineCommand({
  path: 'task list',
  summary: 'list tasks, the oldest first',
  options: {
    state: {
      value: 'STATE',
      choices: ['created', 'running', 'succeeded', 'failed', 'cancelled'],
      help: 'only those in it',
    },
    template: { value: 'ID', help: 'only those of this template' },
    ...LIMIT_OPTION,
  },
  examples: [
    ['task list', 'all of them'],
    ['task list --state running', 'those under way'],
  ],
  run: (session, { options: { template, ...options } }) =>
    showList(session, '/tasks', { ...options, tpl_id: template }, COLUMNS),
});
