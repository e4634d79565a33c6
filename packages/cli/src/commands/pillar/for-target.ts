import { TGT_TYPES } from '@colonnade/contracts';
import { usageError } from '../../exit-codes.ts';
import { LIMIT_OPTION, showList } from '../../shared/pages.ts';
import { PILLAR_COLUMNS } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const pillarForTarget = defineCommand({
  path: 'pillar for-target',
  summary: 'list the pillars of exactly one environment of a target',
  args: { type: { help: TGT_TYPES.join(', ') }, id: { help: 'the target' } },
  options: {
    user: { value: 'NAME', help: 'the environment is TYPE:ID;user:NAME, without it TYPE:ID' },
    pillarenv: { value: 'TEXT', help: 'the environment itself, instead of --user' },
    ...LIMIT_OPTION,
  },
  examples: [
    ['pillar for-target collection shop --user ann', 'of a collection of hers'],
    ['pillar for-target root root --pillarenv base', 'of the root'],
  ],
  async run(session, { args, options: { user, ...options } }) {
    if (!(TGT_TYPES as readonly string[]).includes(args.type)) {
      throw usageError(`"${args.type}" is none of ${TGT_TYPES.join(', ')}`);
    }
    const query = { ...options, user_sub: user, tgt_type: args.type, tgt_id: args.id };
    await showList(session, '/pillars/for-target', query, PILLAR_COLUMNS);
  },
});
