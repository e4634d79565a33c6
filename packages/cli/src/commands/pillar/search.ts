import type { ValueObject } from '@colonnade/value';
import { LIMIT_OPTION, showPages } from '../../shared/pages.ts';
import { TIME_OPTIONS, timeOf } from '../../shared/time.ts';
import { PILLAR_COLUMNS } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarSearch = defineCommand({
  path: 'pillar search',
  summary: 'find pillars across all scopes',
  details: 'All that is given must hold. Values of secrets are never looked at.',
  options: {
    name: { value: 'NAME', help: 'of exactly this name' },
    'name-prefix': { value: 'TEXT', help: 'whose name begins so' },
    value: { value: 'TEXT', help: 'whose plain value, as canonical JSON, holds this text' },
    scope: { value: 'PILLARENV', repeat: true, help: 'in this scope; several times' },
    'tgt-type': {
      value: 'TYPE',
      choices: ['root', 'collection', 'minion', 'task_tpl', 'task'],
      help: 'on this kind of target',
    },
    'created-by': { value: 'USER', help: 'made by' },
    'updated-by': { value: 'USER', help: 'changed last by' },
    ...TIME_OPTIONS,
    ...LIMIT_OPTION,
  },
  examples: [
    ['pillar search --value ntp1.example', 'where a host is named'],
    ['pillar search --name motd --updated-by ann --since 7d', 'what she changed this week'],
  ],
  async run(session, { options }) {
    const asked: Record<string, ValueObject[string] | undefined> = {
      name: options.name,
      name_prefix: options['name-prefix'],
      value: options.value,
      scopes: options.scope.length === 0 ? undefined : [...options.scope],
      tgt_type: options['tgt-type'],
      created_by: options['created-by'],
      updated_by: options['updated-by'],
      since: timeOf('since', options.since, Date.now()),
      until: timeOf('until', options.until, Date.now()),
    };
    const filter = Object.fromEntries(
      Object.entries(asked).filter((entry): entry is [string, ValueObject[string]] => entry[1] !== undefined),
    );
    const api = session.api();
    await showPages(session, options.limit, PILLAR_COLUMNS, async ({ limit, cursor }) => {
      const paging: ValueObject = { limit: BigInt(limit), ...(cursor === undefined ? {} : { cursor }) };
      return (await api.call('POST', '/pillars/search', { ...filter, ...paging })).value;
    });
  },
});
