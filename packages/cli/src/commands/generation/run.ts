import { defineCommand } from '../../table/command.ts';

export const generationRun = defineCommand({
  path: 'generation run',
  summary: 'ask for a generation of policies',
  details:
    'It begins when changes have been waited for; this command does not wait for its end: see "generation list".',
  options: { all: { help: 'compile and write all policies, whether they changed or not' } },
  examples: [
    ['generation run', 'what may have changed'],
    ['generation run --all', 'everything, without looking whether it has'],
  ],
  async run(session, { options }) {
    await session.api().call('POST', '/generations', { all: options.all });
    if (session.json) await session.out.json({ asked: true });
    else session.out.note('asked for');
  },
});
