import type { Value } from '@colonnade/value';
import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { asList, asObject, column, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  {
    title: 'TYPES',
    of: (row: Value) => textOf(asList(asObject(row).types).map((one) => textOf(asObject(one).type))),
  },
  column('ENROLMENTS', 'enrolment_ids'),
];

export const serviceList = defineCommand({
  path: 'service list',
  summary: 'list services outside of Colonnade',
  options: LIMIT_OPTION,
  examples: [['service list', 'all of them']],
  run: (session, { options }) => showList(session, '/services', options, COLUMNS),
});
