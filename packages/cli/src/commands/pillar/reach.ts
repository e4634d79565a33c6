import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { column } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

const COLUMNS = [column('MASTER', 'master'), column('MINION', 'minion_id'), column('THROUGH', 'collection')];

export const pillarReach = defineCommand({
  path: 'pillar reach',
  summary: 'list the minions a pillar reaches',
  details:
    'By the tree, the memberships and the tasks as they are now. Whether another scope overrides it for one of them, "explain" says.',
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...LIMIT_OPTION },
  examples: [
    ['pillar reach motd --collection shop', 'the members of shop and of all below it'],
    ['colonnade pillar reach motd --root --json | jq .items[].minion_id', 'for a program'],
  ],
  async run(session, { args, options }) {
    const pid = await resolvePid(session.api(), args.pillar, options);
    await showList(session, `${pathOf(pid)}/reach`, { limit: options.limit }, COLUMNS);
  },
});
