import { readProfiles } from '../../profile/config-file.ts';
import { defineCommand } from '../../table/command.ts';

export const profileList = defineCommand({
  path: 'profile list',
  summary: 'list the profiles kept on this host',
  examples: [['profile list', 'all of them; the current one is marked']],
  async run({ env, out, json }) {
    const { current, profiles } = readProfiles(env);
    const rows = Object.entries(profiles).map(([name, { url, token, nats_url }]) => ({
      name,
      url,
      current: name === current,
      has_token: token !== undefined,
      nats_url: nats_url ?? null,
    }));
    if (json) return await out.json({ items: rows });
    const table = out.table<(typeof rows)[number]>([
      { title: '', of: (row) => (row.current ? '*' : '') },
      { title: 'NAME', of: (row) => row.name },
      { title: 'URL', of: (row) => row.url },
      { title: 'TOKEN', of: (row) => (row.has_token ? 'yes' : 'no') },
      { title: 'NATS', of: (row) => row.nats_url ?? '-' },
    ]);
    await table.add(rows);
  },
});
