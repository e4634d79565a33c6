import { IF_MATCH_OPTION, ifMatch } from '../../shared/conditions.ts';
import { allFields, asObject, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MASTER_OPTIONS } from './options.ts';

export const masterSet = defineCommand({
  path: 'master set',
  summary: 'change the environments of a master, and what happens to unknown minions',
  details: 'What is not given stays. The environments given are all it has from then on.',
  args: { id: { help: 'logical master' } },
  options: { ...MASTER_OPTIONS, 'clear-envs': { help: 'take all environments away' }, ...IF_MATCH_OPTION },
  examples: [['master set salt-east --env prod --env stage', 'two environments']],
  async run(session, { args, options }) {
    const api = session.api();
    const path = `/masters/${encodeURIComponent(args.id)}`;
    const now = await api.call('GET', path);
    const before = asObject(now.value);
    const given = options.env.length > 0 || options['clear-envs'];
    const body = {
      envs: given ? [...options.env] : (before.envs ?? []),
      on_unknown_minion: options['on-unknown-minion'] ?? before.on_unknown_minion ?? null,
    };
    const etag = options['if-match'] ?? now.headers.get('etag') ?? undefined;
    const answer = await api.call('PUT', path, body, await ifMatch(api, path, etag));
    await show(session, answer.value, allFields);
  },
});
