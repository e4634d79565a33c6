import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  column('USER', 'sub'),
  column('ROLES', 'roles'),
  column('FOR A PART', 'scoped_roles'),
  column('LAST USED', 'last_used_at'),
  column('EXPIRES', 'expires_at'),
];

export const tokenList = defineCommand({
  path: 'token list',
  summary: 'list API tokens, without their secrets',
  options: LIMIT_OPTION,
  examples: [['token list', 'all of them']],
  run: (session, { options }) => showList(session, '/tokens', options, COLUMNS),
});
