import { readProfiles, writeProfiles } from '../../profile/config-file.ts';
import { chooseProfile } from '../../profile/settings.ts';
import { confirm, YES_OPTION } from '../../shared/conditions.ts';
import { defineCommand } from '../../table/command.ts';

export const profileDelete = defineCommand({
  path: 'profile delete',
  summary: 'remove a profile with its token',
  details: 'The token itself stays valid: end it with "token delete".',
  args: { name: { help: 'profile' } },
  options: YES_OPTION,
  examples: [['profile delete test --yes', 'without asking']],
  async run({ env, out, json }, { args, options }) {
    chooseProfile(env, args.name);
    await confirm(`remove profile ${args.name}`, options.yes);
    const profiles = readProfiles(env);
    const { [args.name]: _gone, ...rest } = profiles.profiles;
    await writeProfiles(env, { ...profiles, profiles: rest });
    if (json) return await out.json({ deleted: args.name });
    out.note(`profile "${args.name}" is removed`);
  },
});
