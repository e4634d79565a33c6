import { confirm, IF_MATCH_OPTION, ifMatch, YES_OPTION } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarUnseal = defineCommand({
  path: 'pillar unseal',
  summary: 'make a secret a plain pillar',
  details: 'Whoever may read the estate sees it from then on; needs the right to reveal.',
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...IF_MATCH_OPTION, ...YES_OPTION },
  examples: [['pillar unseal db_password --collection shop --yes', 'by name and target']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = pathOf(await resolvePid(api, args.pillar, options));
    await confirm(`show the secret ${args.pillar} to all who may read the estate`, options.yes);
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('POST', `${path}/unseal`, undefined, headers);
    await show(session, answer.value, pillarFields);
  },
});
