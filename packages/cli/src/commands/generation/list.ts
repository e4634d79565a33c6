import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  column('ENDED', 'ended_at'),
  column('STATUS', 'status'),
  column('UPDATED', 'updated_count', 'right'),
  column('FAILED', 'failed_count', 'right'),
  column('REASON', 'reason'),
];

export const generationList = defineCommand({
  path: 'generation list',
  summary: 'list the generations of policies, the newest first',
  options: LIMIT_OPTION,
  examples: [['generation list --limit 10', 'the last ten']],
  run: (session, { options }) => showList(session, '/generations', options, COLUMNS),
});
