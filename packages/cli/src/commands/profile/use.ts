import { readProfiles, writeProfiles } from '../../profile/config-file.ts';
import { chooseProfile } from '../../profile/settings.ts';
import { defineCommand } from '../../table/command.ts';

export const profileUse = defineCommand({
  path: 'profile use',
  summary: 'make a profile the current one',
  args: { name: { help: 'profile' } },
  examples: [['profile use test', 'from now on']],
  async run({ env, out, json }, { args }) {
    chooseProfile(env, args.name);
    await writeProfiles(env, { ...readProfiles(env), current: args.name });
    if (json) return await out.json({ current: args.name });
    out.note(`profile "${args.name}" is the current one`);
  },
});
