import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { servicePath } from './options.ts';

export const serviceGet = defineCommand({
  path: 'service get',
  summary: 'show one service, its types with their schemas, and the ids of its enrolments',
  args: { id: { help: 'service' } },
  examples: [['service get shop', 'one service']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', servicePath(args.id));
    await show(session, value, allFields);
  },
});
