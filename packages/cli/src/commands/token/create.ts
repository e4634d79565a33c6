import { ROLES } from '@colonnade/contracts';
import type { ValueObject } from '@colonnade/value';
import { usageError } from '../../exit-codes.ts';
import { makeToken, SAVE_OPTION } from '../../shared/one-time.ts';
import { countOf } from '../../shared/pages.ts';
import { defineCommand } from '../../table/command.ts';

export const tokenCreate = defineCommand({
  path: 'token create',
  summary: 'make an API token for a person or a program',
  details: 'It is shown this once; only its hash is kept.',
  args: { user: { help: 'whose it is: the name on every record' } },
  options: {
    role: { value: 'ROLE', repeat: true, choices: ROLES, help: `${ROLES.join(', ')}; several times` },
    scope: {
      value: 'SCOPE',
      repeat: true,
      help: 'a role for a part: ROLE:tgt_types=…;collections=…;name_prefixes=…, lists with commas; several times',
    },
    'expires-in': { value: 'SECONDS', help: 'how long it lives (default: until it is deleted)' },
    ...SAVE_OPTION,
  },
  examples: [
    ['token create ann --role editor --role secret-reader --expires-in 86400', 'two roles, for a day'],
    [
      'token create bot --scope "editor:collections=shop,web;name_prefixes=app_"',
      'a role for a part of the estate',
    ],
    ['token create backup --role viewer --save backup-token', 'into a file'],
  ],
  async run(session, { args, options }) {
    const { role, scope, save, 'expires-in': expires } = options;
    const body = {
      ...{ sub: args.user, roles: [...role] },
      ...(scope.length === 0 ? {} : { scoped_roles: scope.map(readScope) }),
      ...(expires === undefined ? {} : { expires_in_s: BigInt(countOf('expires-in', expires)) }),
    };
    const api = session.api();
    await makeToken(session, save, () => api.call('POST', '/tokens', body));
  },
});

const SCOPES = ['tgt_types', 'collections', 'name_prefixes'];

/** @throws ColonnadeError `misconfigured` */
function readScope(text: string): ValueObject {
  const [, role = '', rest = ''] = /^([a-z-]+):(.+)$/u.exec(text) ?? [];
  const parts = rest.split(';').map((part) => /^([a-z_]+)=(.+)$/u.exec(part) ?? []);
  if (role === '' || parts.some(([, name]) => name === undefined || !SCOPES.includes(name))) {
    throw usageError(`--scope: "${text}" is not ROLE:NAME=A,B;… with names of ${SCOPES.join(', ')}`);
  }
  return { role, ...Object.fromEntries(parts.map(([, name = '', list = '']) => [name, list.split(',')])) };
}
