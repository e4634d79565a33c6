import { requireTarget, TARGET_OPTIONS } from '../../shared/target.ts';
import { PLAIN_VALUE_OPTION, readValue, VALUE_DETAILS, VALUE_OPTIONS } from '../../shared/value-input.ts';
import { pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarCreate = defineCommand({
  path: 'pillar create',
  summary: 'create a pillar, plain or secret',
  details: VALUE_DETAILS,
  args: { name: { help: 'its key in the minions’ pillar' } },
  options: {
    ...TARGET_OPTIONS,
    secret: { help: 'seal it before it is stored' },
    ...PLAIN_VALUE_OPTION,
    ...VALUE_OPTIONS,
  },
  examples: [
    [`pillar create motd --root --value '"good morning"'`, 'a text for every minion'],
    ['pillar create vhosts --collection shop --value-file vhosts.yaml', 'a value from a file'],
    ['pillar create db_password --collection shop --secret', 'a secret, asked for and not shown'],
    [
      'pass show db | colonnade pillar create db_password --collection shop --secret',
      'a secret from a program',
    ],
  ],
  async run(session, { args, options }) {
    const target = requireTarget(options);
    const value = await readValue(options, options.secret);
    const body = { ...target, name: args.name, value, is_secret: options.secret };
    const answer = await session.api().call('POST', '/pillars', body);
    await show(session, answer.value, pillarFields);
  },
});
