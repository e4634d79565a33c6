import { countOf } from '../../shared/pages.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { keyPath } from './path.ts';

export const keyUndestroy = defineCommand({
  path: 'key undestroy',
  summary: 'take back a version of a key that was destroyed and is not erased yet',
  details: 'It still opens nothing until the least version is lowered to it.',
  args: { name: { help: 'key: pillars or identity' }, version: { help: 'its number' } },
  examples: [['key undestroy pillars 1', 'as long as it is there']],
  async run(session, { args }) {
    const body = { version: BigInt(countOf('version', args.version)) };
    const answer = await session.api().call('POST', keyPath(args.name, 'undestroy'), body);
    await show(session, answer.value, allFields);
  },
});
