import { allFields, show } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';

export const whoami = defineCommand({
  path: 'whoami',
  summary: 'show whose token this is, its roles, and what it may do',
  examples: [['whoami', 'of the current profile']],
  async run(session) {
    const { value } = await session.api().call('GET', '/whoami');
    await show(session, value, allFields);
  },
});
