import type { ValueObject } from '@colonnade/value';
import { makeToken, SAVE_OPTION } from '../../shared/one-time.ts';
import { countOf } from '../../shared/pages.ts';
import { defineCommand } from '../../table/command.ts';
import { LIFETIME_OPTION } from './options.ts';

export const masterTokenCreate = defineCommand({
  path: 'master token create',
  summary: 'make a further token for a master',
  details: 'It is shown this once. The one before goes on until it ends or is deleted.',
  args: { id: { help: 'logical master' } },
  options: {
    ...LIFETIME_OPTION,
    ...SAVE_OPTION,
  },
  examples: [['master token create salt-east --save renewed', 'into a file']],
  async run(session, { args, options }) {
    const { save, 'token-lifetime': lifetime } = options;
    const body: ValueObject =
      lifetime === undefined ? {} : { token_lifetime_s: BigInt(countOf('token-lifetime', lifetime)) };
    const api = session.api();
    const path = `/masters/${encodeURIComponent(args.id)}/tokens`;
    await makeToken(session, save, () => api.call('POST', path, body));
  },
});
