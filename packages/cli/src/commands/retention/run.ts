import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const retentionRun = defineCommand({
  path: 'retention run',
  summary: 'remove now what of the history is not kept',
  options: YES_OPTION,
  examples: [['retention run --yes', 'without asking']],
  async run(session, { options }) {
    await confirm('remove what of the history is not kept, for good', options.yes);
    const { value } = await session.api().call('POST', '/history/retention');
    await show(session, value, allFields);
  },
});
