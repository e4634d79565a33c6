import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { PLAIN_VALUE_OPTION, readValue, VALUE_DETAILS, VALUE_OPTIONS } from '../../shared/value-input.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarSet = defineCommand({
  path: 'pillar set',
  summary: 'give a plain pillar another value',
  details: `${VALUE_DETAILS} A secret is changed with "pillar replace".`,
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...PLAIN_VALUE_OPTION, ...VALUE_OPTIONS, ...IF_MATCH_OPTION },
  examples: [
    [`pillar set motd --root --value '{"text":"hello","level":1}'`, 'a value on the command line'],
    ['pillar set vhosts --collection shop --value-file vhosts.yaml', 'a value from a file'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const value = await readValue(options, false);
    const path = pathOf(await resolvePid(api, args.pillar, options));
    const answer = await api.call('PUT', path, { value }, await ifMatch(api, path, options['if-match']));
    await show(session, answer.value, pillarFields);
  },
});
