import { usageError } from '../../exit-codes.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const STATES = ['running', 'succeeded', 'failed', 'cancelled'];

export const taskState = defineCommand({
  path: 'task state',
  summary: 'say that a task runs, or has ended',
  args: { id: { help: 'task' }, state: { help: 'running, succeeded, failed or cancelled' } },
  options: { 'if-match': { value: 'ETAG', help: 'only if it still is what was read with this ETag' } },
  examples: [
    ['task state 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 running', 'it has begun'],
    ['task state 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 succeeded', 'its minions get its pillars no more'],
  ],
  async run(session, { args, options }) {
    if (!STATES.includes(args.state)) throw usageError(`"${args.state}" is none of ${STATES.join(', ')}`);
    const headers: Record<string, string> =
      options['if-match'] === undefined ? {} : { 'if-match': options['if-match'] };
    const path = `/tasks/${encodeURIComponent(args.id)}/state`;
    const { value } = await session.api().call('POST', path, { state: args.state }, headers);
    await show(session, value, allFields);
  },
});
