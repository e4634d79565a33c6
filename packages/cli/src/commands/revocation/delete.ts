import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const revocationDelete = defineCommand({
  path: 'revocation delete',
  summary: 'take a revocation back',
  args: { id: { help: 'id of the revocation' } },
  options: YES_OPTION,
  examples: [['revocation delete 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --yes', 'without asking']],
  async run(session, { args, options }) {
    await confirm(`take revocation ${args.id} back`, options.yes);
    const answer = await session.api().call('DELETE', `/revocations/${encodeURIComponent(args.id)}`);
    await show(session, answer.value ?? { id: args.id }, allFields);
  },
});
