import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const retentionShow = defineCommand({
  path: 'retention show',
  summary: 'show how much of the history is kept',
  examples: [['retention show', 'versions and days']],
  async run(session) {
    const { value } = await session.api().call('GET', '/history/retention');
    await show(session, value, allFields);
  },
});
