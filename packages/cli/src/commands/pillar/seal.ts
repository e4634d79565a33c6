import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarSeal = defineCommand({
  path: 'pillar seal',
  summary: 'make a plain pillar a secret',
  details: 'The plain values of its history are emptied.',
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...IF_MATCH_OPTION },
  examples: [['pillar seal db_password --collection shop', 'by name and target']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = pathOf(await resolvePid(api, args.pillar, options));
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('POST', `${path}/seal`, undefined, headers);
    await show(session, answer.value, pillarFields);
  },
});
