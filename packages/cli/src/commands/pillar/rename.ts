import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarRename = defineCommand({
  path: 'pillar rename',
  summary: 'give a pillar another name; a secret is sealed anew for it',
  args: { ...PILLAR_ARGUMENT, name: { help: 'the new name' } },
  options: { ...TARGET_OPTIONS, ...IF_MATCH_OPTION },
  examples: [['pillar rename motd banner --root', 'by name and target']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = pathOf(await resolvePid(api, args.pillar, options));
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('POST', `${path}/rename`, { name: args.name }, headers);
    await show(session, answer.value, pillarFields);
  },
});
