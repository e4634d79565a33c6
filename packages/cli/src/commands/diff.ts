import { canonicalText, type Value, type ValueObject } from '@colonnade/value';
import { queryOf } from '../shared/pages.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../shared/target.ts';
import { asList, asObject, textOf } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';
import { escapeLine } from '../terminal/escape.ts';

export const diff = defineCommand({
  path: 'diff',
  summary: 'show what differs between two versions of a pillar',
  details: 'Of a secret only whether it was sealed anew. "history" shows the clocks.',
  args: PILLAR_ARGUMENT,
  options: {
    ...TARGET_OPTIONS,
    from: { value: 'CLOCK', required: true, help: 'the version before' },
    to: { value: 'CLOCK', help: 'the version after (default: the newest)' },
  },
  examples: [
    ['diff motd --root --from 12', 'against the newest'],
    ['diff motd --root --from 12 --to 42', 'between two'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const pid = await resolvePid(api, args.pillar, options);
    const query = queryOf({ from: options.from, to: options.to });
    const { value } = await api.call('GET', `${pathOf(pid)}/diff${query}`);
    if (session.json) return await session.out.json(value ?? null);
    for (const line of diffLines(asObject(value))) await session.out.line(escapeLine(line));
  },
});

function diffLines({ from, to, value_changed, changes, changes_more }: ValueObject): string[] {
  const found = asList(changes);
  const state =
    value_changed === null
      ? 'a value was purged: nobody knows'
      : value_changed
        ? 'the value is another'
        : 'the same value';
  return [
    `--- ${versionText(asObject(from))}`,
    `+++ ${versionText(asObject(to))}`,
    ...(found.length === 0 ? [state] : found.flatMap(changeLines)),
    ...(changes_more === true ? ['… and more'] : []),
  ];
}

function versionText({ clock, at, by, op, name }: ValueObject): string {
  return [name, `clock ${textOf(clock)}`, at, `${textOf(op)} by ${textOf(by)}`]
    .map((one) => textOf(one))
    .join('  ');
}

function changeLines(change: Value): string[] {
  const { path, before, after } = asObject(change);
  const line = (mark: string, value: Value | undefined) =>
    value === undefined ? [] : [`${mark} ${path === '' ? '' : `${textOf(path)}: `}${canonicalText(value)}`];
  return [...line('-', before), ...line('+', after)];
}
