import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const taskGet = defineCommand({
  path: 'task get',
  summary: 'show a task and what pillars it has',
  args: { id: { help: 'task' } },
  examples: [['task get 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11', 'one task']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', `/tasks/${encodeURIComponent(args.id)}`);
    await show(session, value, allFields);
  },
});
