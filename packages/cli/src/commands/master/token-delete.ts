import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const masterTokenDelete = defineCommand({
  path: 'master token delete',
  summary: 'revoke one token of a master',
  args: { id: { help: 'logical master' }, jti: { help: 'id of the token, as "master get" shows it' } },
  options: YES_OPTION,
  examples: [['master token delete salt-east 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --yes', 'without asking']],
  async run(session, { args, options }) {
    await confirm(`revoke token ${args.jti} of master ${args.id}`, options.yes);
    const path = `/masters/${encodeURIComponent(args.id)}/tokens/${encodeURIComponent(args.jti)}`;
    const answer = await session.api().call('DELETE', path);
    await show(session, answer.value ?? { jti: args.jti }, allFields);
  },
});
