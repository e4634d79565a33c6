import type { Value, ValueObject } from '@colonnade/value';
import { hookFolder } from '../../shared/hook-parameters.ts';
import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { asList, asObject, column, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import type { Column } from '../../terminal/table.ts';

/** The names in a list of objects. */
function names(field: string): (row: Value) => string {
  return (row) => textOf(asList(asObject(row)[field]).map((one) => asObject(one).name ?? null));
}

const COLUMNS: readonly Column<Value>[] = [
  column('EVENT', 'event'),
  { title: 'CAN STOP IT', of: (row) => (asObject(row).veto === true ? 'yes' : 'no') },
  { title: 'HOOKS', of: (row) => textOf(asObject(row).fault ?? names('hooks')(row)) },
  { title: 'IGNORED', of: names('ignored') },
];

export const hooksList = defineCommand({
  path: 'hooks list',
  summary: 'list the events that have hooks, and the hooks of each in the order they run',
  args: { event: { help: 'only this one, with its variables and timeouts', optional: true } },
  options: LIMIT_OPTION,
  examples: [
    ['hooks list', 'all events'],
    ['hooks list policy-generation-node-ready', 'one, with what its hooks are told'],
    ["hooks list --json | jq '.items[] | select(.hooks != []) | .event'", 'events something runs for'],
  ],
  async run(session, { args, options }) {
    if (args.event === undefined) return await showList(session, '/hooks', options, COLUMNS);
    await show(session, await hookFolder(session.api(), args.event), folderFields);
  },
});

function folderFields(folder: ValueObject): (readonly [string, string])[] {
  const { event, when, veto, parameters, hooks, ignored, fault } = folder;
  return [
    ['event', textOf(event)],
    ['run', textOf(when)],
    ['can stop it', veto === true ? 'yes' : 'no'],
    ...(fault === undefined ? [] : ([['fault', textOf(fault)]] as const)),
    ...asList(hooks).map((one) => {
      const { name, warn_ms, kill_ms, faults, fault: why } = asObject(one);
      const notes = [...asList(faults), ...(why === undefined ? [] : [why])].map(textOf).join('; ');
      const times = `warned of after ${textOf(warn_ms)} ms, killed after ${textOf(kill_ms)} ms`;
      return [`hook ${textOf(name)}`, notes === '' ? times : `${times}; ${notes}`] as const;
    }),
    ...asList(ignored).map(
      (one) => [`ignored ${textOf(asObject(one).name)}`, textOf(asObject(one).why)] as const,
    ),
    ...asList(parameters).map((one) => [textOf(asObject(one).name), textOf(asObject(one).meaning)] as const),
  ];
}
