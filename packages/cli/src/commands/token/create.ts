import { ROLES } from '@colonnade/contracts';
import { checkFolder, saveCredentials } from '../../shared/credentials.ts';
import { countOf } from '../../shared/pages.ts';
import { allFields, asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const tokenCreate = defineCommand({
  path: 'token create',
  summary: 'make an API token for a person or a program',
  details: 'It is shown this once; only its hash is kept.',
  args: { user: { help: 'whose it is: the name on every record' } },
  options: {
    role: { value: 'ROLE', repeat: true, choices: ROLES, help: `${ROLES.join(', ')}; several times` },
    'expires-in': { value: 'SECONDS', help: 'how long it lives (default: until it is deleted)' },
    save: { value: 'DIR', help: 'write it to the file "token" there, mode 0600, and do not show it' },
  },
  examples: [
    ['token create ann --role editor --role secret-reader --expires-in 86400', 'two roles, for a day'],
    ['token create backup --role viewer --save backup-token', 'into a file'],
  ],
  async run(session, { args, options }) {
    const { role, save, 'expires-in': expires } = options;
    const body = {
      ...{ sub: args.user, roles: [...role] },
      ...(expires === undefined ? {} : { expires_in_s: BigInt(countOf('expires-in', expires)) }),
    };
    const api = session.api();
    if (save !== undefined) await checkFolder(save, ['token']);
    const { value } = await api.call('POST', '/tokens', body);
    if (save === undefined) {
      session.out.note('the token is shown this once: keep it now');
      return await show(session, value, allFields);
    }
    const { token, ...rest } = asObject(value);
    await saveCredentials(save, { token: textOf(token) });
    session.out.note(`token is in ${save}`);
    await show(session, rest, allFields);
  },
});
