import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { readValue, VALUE_DETAILS, VALUE_OPTIONS } from '../../shared/value-input.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarReplace = defineCommand({
  path: 'pillar replace',
  summary: 'give a secret another value, without a gap',
  details: `Same pid and place, a key of its own. ${VALUE_DETAILS}`,
  args: PILLAR_ARGUMENT,
  options: { ...TARGET_OPTIONS, ...VALUE_OPTIONS, ...IF_MATCH_OPTION },
  examples: [
    ['pillar replace db_password --collection shop', 'asked for and not shown'],
    ['pillar replace tls_key --collection shop --value-file tls.key', 'from a file'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const path = pathOf(await resolvePid(api, args.pillar, options));
    const headers = await ifMatch(api, path, options['if-match']);
    const value = await readValue(options, true);
    const answer = await api.call('POST', `${path}/replace`, { value }, headers);
    await show(session, answer.value, pillarFields);
  },
});
