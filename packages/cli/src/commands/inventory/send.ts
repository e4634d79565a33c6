import { usageError } from '../../exit-codes.ts';
import { readDocument } from '../../shared/named-values.ts';
import { allFields, asObject, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS } from '../minion/path.ts';

export const inventorySend = defineCommand({
  path: 'inventory send',
  summary: 'store the inventory of a minion; one that is not registered becomes pending',
  details:
    'YAML or JSON with some of hostname, os (name, version, service_pack, string), ips, agent_type, roles and properties. It replaces the one before, and settles of which collections with a rule the minion is a member.',
  args: MINION_ARGUMENTS,
  options: { file: { value: 'FILE', required: true, help: 'the inventory; "-": standard input' } },
  examples: [['inventory send salt-east shop-1.example --file inventory.yaml', 'from a file']],
  async run(session, { args, options }) {
    const facts = await readDocument(options.file);
    if (typeof facts !== 'object' || facts === null || Array.isArray(facts))
      throw usageError(`${options.file} holds no inventory: it is no object`);
    const body = { ...asObject(facts), master: args.master, minion_id: args.id };
    const { value } = await session.api().call('POST', '/inventories', body);
    await show(session, value, allFields);
  },
});
