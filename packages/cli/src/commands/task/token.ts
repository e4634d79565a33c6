import { makeToken, SAVE_OPTION } from '../../shared/one-time.ts';
import { defineCommand } from '../../table/command.ts';

export const taskToken = defineCommand({
  path: 'task token',
  summary: 'make one more token of a task that lives',
  details:
    "It reads the task's pillars, secrets too, and what you saved of its template. It lives for a quarter of an hour, and no longer than the task.",
  args: { id: { help: 'task' } },
  options: SAVE_OPTION,
  examples: [['task token 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --save run', 'into a file']],
  async run(session, { args, options }) {
    const path = `/tasks/${encodeURIComponent(args.id)}/token`;
    await makeToken(session, options.save, () => session.api().call('POST', path));
  },
});
