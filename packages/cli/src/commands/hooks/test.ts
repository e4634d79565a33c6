import type { ValueObject } from '@colonnade/value';
import { HOOK_ARGUMENT, hookParameters, PARAMETER_OPTIONS } from '../../shared/hook-parameters.ts';
import { asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const hooksTest = defineCommand({
  path: 'hooks test',
  summary: 'show what would run for an event, and with what environment; nothing runs',
  details: 'A variable that is missing, or not the event\'s, is an error, as it would be for "hooks run".',
  args: HOOK_ARGUMENT,
  options: PARAMETER_OPTIONS,
  examples: [
    ['hooks test node-post-acceptance --master salt-east --minion shop-1.example', 'for a minion'],
    ['hooks test node-inventory-received-failed --set RUDDER_INVENTORY_PATH=/srv/x.json', 'with a variable'],
  ],
  async run(session, { args, options }) {
    const parameters = await hookParameters(session.api(), args.event, options);
    const path = `/hooks/${encodeURIComponent(args.event)}/run`;
    const { value } = await session.api().call('POST', path, { parameters, dry_run: true });
    await show(session, value, fields);
  },
});

function fields({ folder, not_run, environment }: ValueObject): (readonly [string, string])[] {
  return [
    ['folder', textOf(folder)],
    ['would run', textOf(not_run)],
    ...Object.entries(asObject(environment)).map(([name, value]) => [name, textOf(value)] as const),
  ];
}
