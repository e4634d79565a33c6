import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('ID', 'id'),
  column('USER', 'sub'),
  column('JTI', 'jti'),
  column('REVOKED', 'revoked_at'),
  column('ENDS', 'ends_at'),
];

export const revocationList = defineCommand({
  path: 'revocation list',
  summary: 'list revocations of OpenID Connect tokens that have not ended',
  options: LIMIT_OPTION,
  examples: [['revocation list', 'all of them']],
  run: (session, { options }) => showList(session, '/revocations', options, COLUMNS),
});
