import type { ValueObject } from '@colonnade/value';
import { asList, asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const generationGet = defineCommand({
  path: 'generation get',
  summary: 'show one generation: whom it updated, and who keeps the old policies',
  details: 'Who keeps the old ones is not told to refresh; the bridge serves the live pillar all the same.',
  args: { id: { help: 'when it began, as "generation list" shows it' } },
  examples: [['generation get 2026-01-31T12:00:00.000Z', 'one generation']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', `/generations/${encodeURIComponent(args.id)}`);
    await show(session, value, generationFields);
  },
});

/** What is shown of it, row by row. */
export function generationFields({
  updated,
  failed,
  names_left_out,
  ...rest
}: ValueObject): (readonly [string, string])[] {
  const nameOf = (one: ValueObject) => `${textOf(one.master)}/${textOf(one.minion_id)}`;
  return [
    ...Object.entries(rest).map(([name, value]) => [name, textOf(value)] as const),
    ['updated', textOf(asList(updated).map((one) => nameOf(asObject(one))))],
    ...asList(failed).map((one) => {
      const { reason, refresh } = asObject(one);
      return [nameOf(asObject(one)), `${textOf(reason)}; refresh ${textOf(refresh)}`] as const;
    }),
    ...leftOut(Number(names_left_out)),
  ];
}

function leftOut(names: number): (readonly [string, string])[] {
  return names > 0 ? [['not shown', `${names} more, which the counts have`]] : [];
}
