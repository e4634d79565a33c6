import { IF_MATCH_OPTION } from '../../shared/conditions.ts';
import { allFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { MINION_ARGUMENTS, minionPath } from './path.ts';

export const minionSet = defineCommand({
  path: 'minion set',
  summary: 'register a minion, or set its collections',
  details: 'The collections given are all it has from then on, in this order: a later one wins.',
  args: MINION_ARGUMENTS,
  options: {
    collection: {
      value: 'ID',
      repeat: true,
      help: 'a collection it is a member of; several times, in order',
    },
    ...IF_MATCH_OPTION,
  },
  examples: [
    ['minion set salt-east shop-1.example --collection linux --collection shop', 'in two collections'],
    ['minion set salt-east shop-1.example', 'in none'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const path = minionPath(args);
    const now = options['if-match'] ?? (await api.send('GET', path)).headers.get('etag') ?? undefined;
    const headers: Record<string, string> =
      now === undefined ? { 'if-none-match': '*' } : { 'if-match': now };
    const answer = await api.call('PUT', path, { collections: [...options.collection] }, headers);
    await show(session, answer.value, allFields);
  },
});
