import type { ValueObject } from '@colonnade/value';
import { checkFolder, saveCredentials } from '../../shared/credentials.ts';
import { countOf } from '../../shared/pages.ts';
import { allFields, asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { LIFETIME_OPTION } from './options.ts';

export const masterTokenCreate = defineCommand({
  path: 'master token create',
  summary: 'make a further token for a master',
  details: 'It is shown this once. The one before goes on until it ends or is deleted.',
  args: { id: { help: 'logical master' } },
  options: {
    ...LIFETIME_OPTION,
    save: { value: 'DIR', help: 'write it to the file "token" there, mode 0600, and do not show it' },
  },
  examples: [['master token create salt-east --save renewed', 'into a file']],
  async run(session, { args, options }) {
    const { save, 'token-lifetime': lifetime } = options;
    const body: ValueObject =
      lifetime === undefined ? {} : { token_lifetime_s: BigInt(countOf('token-lifetime', lifetime)) };
    const api = session.api();
    if (save !== undefined) await checkFolder(save, ['token']);
    const { value } = await api.call('POST', `/masters/${encodeURIComponent(args.id)}/tokens`, body);
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
