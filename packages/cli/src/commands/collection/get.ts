import type { Value, ValueObject } from '@colonnade/value';
import { asList, asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const collectionGet = defineCommand({
  path: 'collection get',
  summary: 'show a collection, what is above it, and its pillars',
  args: { id: { help: 'collection' } },
  examples: [['collection get shop', 'one collection']],
  async run(session, { args }) {
    const { value } = await session.api().call('GET', `/collections/${encodeURIComponent(args.id)}`);
    await show(session, value, fields);
  },
});

function fields({ ancestors, pillars, pillars_more, ...found }: ValueObject) {
  const names = ['id', 'name', 'parent_id', 'owner', 'pillarenv', 'clock', 'etag'];
  const above = asList(ancestors).map((one) => textOf(asObject(one).id));
  return [
    ...names.map((name) => [name, textOf(found[name])] as const),
    ['ancestors', above.length === 0 ? '-' : above.join(' / ')] as const,
    ...asList(pillars).map((one) => ['pillar', pillarText(one)] as const),
    ...(pillars_more === true ? [['pillar', '… and more'] as const] : []),
  ];
}

function pillarText(one: Value): string {
  const { name, pid, is_secret } = asObject(one);
  return `${textOf(name)}  ${textOf(pid)}${is_secret === true ? '  secret' : ''}`;
}
