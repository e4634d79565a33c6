import type { ValueObject } from '@colonnade/value';
import { asObject, show, textOf } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';

export const limits = defineCommand({
  path: 'limits',
  summary: 'show every limit of the API and the rates it allows',
  examples: [['limits', 'all of them']],
  async run(session) {
    const { value } = await session.api().call('GET', '/limits');
    await show(session, value, fields);
  },
});

function fields({ limits: all, rates }: ValueObject): (readonly [string, string])[] {
  return [asObject(rates), asObject(all)].flatMap((group) =>
    Object.entries(group).map(([name, value]) => [name, textOf(value)] as const),
  );
}
