import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { countOf } from '../../shared/pages.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { keyPath } from './path.ts';

export const keyMinVersion = defineCommand({
  path: 'key min-version',
  summary: 'let older versions of a key open nothing more, or open again',
  details:
    'Refused while a value is stored under one of them: rewrap first. What lies elsewhere, such as a backup of the store or an export, does not open either until it is lowered again. Of `identity`: tokens signed with older versions are refused within a minute, and their hosts enrol anew.',
  args: { name: { help: 'key: pillars or identity' }, version: { help: 'the oldest version that opens' } },
  options: YES_OPTION,
  examples: [
    ['key min-version pillars 3 --yes', 'versions 1 and 2 open nothing'],
    ['key min-version identity 3 --yes', 'whatever versions 1 and 2 have signed is refused'],
  ],
  async run(session, { args, options }) {
    const version = countOf('version', args.version);
    await confirm(
      `let versions of ${args.name} below ${version} open nothing, and those from it on open`,
      options.yes,
    );
    await session.api().call('POST', keyPath(args.name, 'min-version'), { version: BigInt(version) });
    await show(session, { name: args.name, min_version: BigInt(version) }, allFields);
  },
});
