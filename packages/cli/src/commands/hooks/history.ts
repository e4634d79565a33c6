import type { Value } from '@colonnade/value';
import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { asList, asObject, column, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import type { Column } from '../../terminal/table.ts';

const COLUMNS: readonly Column<Value>[] = [
  column('BEGAN', 'begun_at'),
  column('EVENT', 'event'),
  column('STATUS', 'status'),
  {
    title: 'HOOKS',
    of(row) {
      const { results, fault } = asObject(row);
      const all = asList(results).map((one) => {
        const { hook, status, reason } = asObject(one);
        return status === 'ok' ? textOf(hook) : `${textOf(hook)} (${textOf(status)}: ${textOf(reason)})`;
      });
      return textOf(fault === undefined ? all : [...all, fault]);
    },
  },
  column('SUBJECT', 'subject'),
];

export const hooksHistory = defineCommand({
  path: 'hooks history',
  summary: 'list what became of hooks, the newest first',
  options: { event: { value: 'NAME', help: 'only of this event' }, ...LIMIT_OPTION },
  examples: [
    ['hooks history --limit 20', 'the last ones'],
    ['hooks history --event node-pre-deletion', 'of one event'],
  ],
  run: (session, { options }) => showList(session, '/hooks/runs', options, COLUMNS),
});
