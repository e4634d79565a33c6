import { usageError } from '../../exit-codes.ts';
import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { readTypes, servicePath, TYPE_OPTION } from './options.ts';

export const serviceSet = defineCommand({
  path: 'service set',
  summary: 'change the types of events a service may publish',
  details: 'The types given are all it has from then on, each with the schema given here or none.',
  args: { id: { help: 'service' } },
  options: { ...TYPE_OPTION, 'clear-types': { help: 'take all types away' }, ...IF_MATCH_OPTION },
  examples: [['service set shop --type order.placed=order.json', 'one type']],
  async run(session, { args, options }) {
    if ((options.type.length === 0) !== options['clear-types'])
      throw usageError('give --type, or --clear-types to leave it none');
    const api = session.api();
    const path = servicePath(args.id);
    const body = { types: await readTypes(options.type) };
    const answer = await api.call('PUT', path, body, await ifMatch(api, path, options['if-match']));
    await show(session, answer.value, allFields);
  },
});
