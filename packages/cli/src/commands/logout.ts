import { usageError } from '../exit-codes.ts';
import { readProfiles, writeProfiles } from '../profile/config-file.ts';
import { chooseProfile } from '../profile/settings.ts';
import { defineCommand } from '../table/command.ts';

export const logout = defineCommand({
  path: 'logout',
  summary: 'forget the token of a profile; its address stays',
  details: 'The token itself stays valid: end it with "token delete".',
  examples: [['logout', 'of the current profile']],
  async run({ env, chosen, out, json }) {
    const { name, profile } = chooseProfile(env, chosen.profile);
    if (profile === undefined) throw usageError(`there is no profile "${name}"`);
    const profiles = readProfiles(env);
    const { token: _token, ...rest } = profile;
    await writeProfiles(env, { ...profiles, profiles: { ...profiles.profiles, [name]: rest } });
    if (json) return await out.json({ profile: name });
    out.note(`the token of profile "${name}" is forgotten`);
  },
});
