import { confirm, IF_MATCH_OPTION, ifMatchOrGone, YES_OPTION } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarPurge = defineCommand({
  path: 'pillar purge',
  summary: 'remove a pillar with all its history, for good',
  details: 'Also one that was deleted, by its pid.',
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['pillar purge 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --yes', 'without asking']],
  async run(session, { args, options }) {
    const api = session.api();
    const pid = await resolvePid(api, args.pillar, options);
    await confirm(`remove pillar ${args.pillar} (${pid}) with its history, for good`, options.yes);
    const headers = await ifMatchOrGone(api, pathOf(pid), options['if-match']);
    const answer = await api.call('POST', `${pathOf(pid)}/purge`, undefined, headers);
    await show(session, answer.value ?? { pid }, allFields);
  },
});
