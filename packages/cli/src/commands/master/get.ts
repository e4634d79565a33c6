import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const masterGet = defineCommand({
  path: 'master get',
  summary: 'show one master and the ids of its tokens',
  args: { id: { help: 'logical master' } },
  examples: [['master get salt-east', 'one master']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', `/masters/${encodeURIComponent(args.id)}`);
    await show(session, value, allFields);
  },
});
