import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const keyRotate = defineCommand({
  path: 'key rotate',
  summary: 'make the next version of a key',
  details:
    'It seals or signs after a minute, when every replica knows it. What older versions of `pillars` sealed still opens, and is brought under the new version in the background; tokens signed with older versions of `identity` are good until they expire. Back up the state folder of crypto-kms afterwards.',
  args: { name: { help: 'key: pillars or identity' } },
  examples: [
    ['key rotate pillars', 'a new key for what is sealed from now on'],
    ['key rotate identity', 'a new key for the identities of workloads'],
  ],
  async run(session, { args }) {
    const { value } = await session.api().call('POST', `/keys/${encodeURIComponent(args.name)}/rotate`);
    await show(session, value, allFields);
  },
});
