import { IF_MATCH_OPTION, ifMatchOrGone } from '../../shared/conditions.ts';
import { countOf } from '../../shared/pages.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarRestore = defineCommand({
  path: 'pillar restore',
  summary: 'give a pillar the value it had, as a new version',
  details: 'Brings a deleted pillar back, by its pid. "history" shows the clocks.',
  args: PILLAR_ARGUMENT,
  options: {
    ...TARGET_OPTIONS,
    clock: { value: 'N', required: true, help: 'of the version, as "history" shows it' },
    ...IF_MATCH_OPTION,
  },
  examples: [
    ['pillar restore motd --root --clock 42', 'an earlier value'],
    ['pillar restore 0198f2d4-1c57-7b1e-9d6c-0a7c1f0f8a11 --clock 42', 'one that was deleted'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const tick = BigInt(countOf('clock', options.clock));
    const path = pathOf(await resolvePid(api, args.pillar, options));
    const headers = await ifMatchOrGone(api, path, options['if-match']);
    const answer = await api.call('POST', `${path}/restore`, { tick }, headers);
    await show(session, answer.value, pillarFields);
  },
});
