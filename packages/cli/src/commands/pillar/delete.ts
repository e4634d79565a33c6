import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarDelete = defineCommand({
  path: 'pillar delete',
  summary: 'delete a pillar; its history stays',
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [
    ['pillar delete motd --root', 'asks first'],
    ['pillar delete motd --root --yes', 'without asking'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const pid = await resolvePid(api, args.pillar, options);
    await confirm(`delete pillar ${args.pillar} (${pid})`, options.yes);
    const path = pathOf(pid);
    const answer = await api.call('DELETE', path, undefined, await ifMatch(api, path, options['if-match']));
    await show(session, answer.value ?? { pid }, allFields);
  },
});
