import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import {
  DESTINATION_NAMES,
  PILLAR_ARGUMENT,
  pathOf,
  requireTarget,
  resolvePid,
  TARGET_OPTIONS,
} from '../../shared/target.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarMove = defineCommand({
  path: 'pillar move',
  summary: 'hang a pillar on another target; a secret is sealed anew for it',
  args: PILLAR_ARGUMENT,
  options: {
    ...TARGET_OPTIONS,
    'to-root': { help: 'to the root' },
    'to-collection': { value: 'ID', help: 'to this collection' },
    'to-minion': { value: 'ID', help: 'to this minion (with --to-master)' },
    'to-master': { value: 'ID', help: 'master of that minion' },
    ...IF_MATCH_OPTION,
  },
  examples: [
    ['pillar move motd --root --to-collection shop', 'from the root to a collection'],
    ['pillar move motd --collection shop --to-minion shop-1.example --to-master salt-east', 'to one minion'],
  ],
  async run(session, { args, options }) {
    const to = {
      ...{ root: options['to-root'], collection: options['to-collection'] },
      ...{ minion: options['to-minion'], master: options['to-master'] },
    };
    const target = requireTarget(to, DESTINATION_NAMES);
    const api = session.api();
    const path = pathOf(await resolvePid(api, args.pillar, options));
    const headers = await ifMatch(api, path, options['if-match']);
    const answer = await api.call('POST', `${path}/move`, target, headers);
    await show(session, answer.value, pillarFields);
  },
});
