import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const keyRotate = defineCommand({
  path: 'key rotate',
  summary: 'make the next version of a key',
  details:
    'It seals after a minute, when every replica knows it; what older versions sealed still opens, and is brought under the new version in the background. Back up the state folder of crypto-kms afterwards.',
  args: { name: { help: 'key: pillars' } },
  examples: [['key rotate pillars', 'a new key for what is sealed from now on']],
  async run(session, { args }) {
    const { value } = await session.api().call('POST', `/keys/${encodeURIComponent(args.name)}/rotate`);
    await show(session, value, allFields);
  },
});
