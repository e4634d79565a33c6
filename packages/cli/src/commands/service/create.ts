import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { readTypes, TYPE_OPTION } from './options.ts';

export const serviceCreate = defineCommand({
  path: 'service create',
  summary: 'register a service outside of Colonnade, with the types of events it may publish',
  details:
    'Its hosts get identities with "service enrol". A schema that says writeOnly: true anywhere keeps the data of refused events out of the dead letters.',
  args: { id: { help: 'its name: a–z 0–9 -' } },
  options: TYPE_OPTION,
  examples: [['service create shop --type order.placed=order.json --type order.paid', 'two types']],
  async run(session, { args, options }) {
    const body = { id: args.id, types: await readTypes(options.type) };
    const { value } = await session.api().call('POST', '/services', body);
    await show(session, value, allFields);
  },
});
