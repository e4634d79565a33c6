import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarPurgeHistory = defineCommand({
  path: 'pillar purge-history',
  summary: 'empty the values of a pillar’s past versions',
  details:
    'Also of a deleted pillar, by its pid. For a secret that was once stored as plain. Answers when the store holds nothing of them any more; backups made before do.',
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...YES_OPTION },
  examples: [['pillar purge-history db_password --collection shop --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const pid = await resolvePid(api, args.pillar, options);
    await confirm(`empty the past versions of ${args.pillar} (${pid}), for good`, options.yes);
    const answer = await api.call('POST', `${pathOf(pid)}/purge-history`);
    await show(session, answer.value ?? { pid }, allFields);
  },
});
