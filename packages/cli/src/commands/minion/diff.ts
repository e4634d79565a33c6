import { canonicalText, type Value, type ValueObject } from '@colonnade/value';
import { asList, asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS, minionPath } from './path.ts';

export const minionDiff = defineCommand({
  path: 'minion diff',
  summary: "show what differs between a minion's last two compiled pillars",
  details: 'Of a secret only whether it changed. They are compiled by generations: see "generation list".',
  args: MINION_ARGUMENTS,
  examples: [['minion diff salt-east shop-1.example', 'what the last change did to a minion']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', `${minionPath(args)}/policies/diff`);
    await show(session, value, fields);
  },
});

function fields({ at, before_at, changes, values_left_out }: ValueObject): (readonly [string, string])[] {
  const rows = asList(changes).map((one) => {
    const { name, kind, is_secret, before, after } = asObject(one);
    const what = is_secret === true ? `${textOf(kind)} (secret)` : `${textOf(kind)} ${step(before, after)}`;
    return [textOf(name), what.trimEnd()] as const;
  });
  return [
    ['in force since', textOf(at)],
    ['before since', textOf(before_at)],
    ...(values_left_out === true ? ([['values', 'left out: they are too large']] as const) : []),
    ...(rows.length === 0 ? ([['changes', 'none']] as const) : rows),
  ];
}

function step(before: Value | undefined, after: Value | undefined): string {
  if (before === undefined) return after === undefined ? '' : canonicalText(after);
  return after === undefined ? canonicalText(before) : `${canonicalText(before)} -> ${canonicalText(after)}`;
}
