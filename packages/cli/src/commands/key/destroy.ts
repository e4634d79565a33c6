import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { countOf } from '../../shared/pages.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { keyPath } from './path.ts';

export const keyDestroy = defineCommand({
  path: 'key destroy',
  summary: 'give a version of a key up; it is erased a week later',
  details:
    'Only one below the least version, under which nothing is stored. Until it is erased, `key undestroy` takes it back. After that no backup of the store made while it was in use opens without a backup of the keyring.',
  args: { name: { help: 'key: pillars or identity' }, version: { help: 'its number' } },
  options: YES_OPTION,
  examples: [['key destroy pillars 1 --yes', 'without asking']],
  async run(session, { args, options }) {
    const version = countOf('version', args.version);
    await confirm(
      `destroy version ${version} of ${args.name}: backups from its time will not open`,
      options.yes,
    );
    const answer = await session
      .api()
      .call('POST', keyPath(args.name, 'destroy'), { version: BigInt(version) });
    await show(session, answer.value, allFields);
  },
});
