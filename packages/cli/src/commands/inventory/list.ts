import { INVENTORY_STATES } from '@colonnade/contracts';
import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [
  column('MASTER', 'master'),
  column('MINION', 'minion_id'),
  column('STATE', 'state'),
  column('RECEIVED', 'received_at'),
  column('FACTS', 'facts'),
];

export const inventoryList = defineCommand({
  path: 'inventory list',
  summary: 'list what minions tell of themselves, and who is pending',
  details:
    'A minion with an inventory and no registration is pending. "minion set" accepts it, "inventory delete" refuses it.',
  options: {
    master: { value: 'ID', help: 'only minions of this master' },
    state: { value: 'STATE', choices: INVENTORY_STATES, help: INVENTORY_STATES.join(' or ') },
    ...LIMIT_OPTION,
  },
  examples: [['inventory list --state pending', 'whom to accept or refuse']],
  run: (session, { options }) => showList(session, '/inventories', options, COLUMNS),
});
