import type { Value } from '@colonnade/value';
import { usageError } from '../exit-codes.ts';
import { explanationLines } from '../shared/explanation.ts';
import { queryOf } from '../shared/pages.ts';
import { momentOf } from '../shared/time.ts';
import { readValue } from '../shared/value-input.ts';
import { asObject } from '../shared/view.ts';
import { defineCommand } from '../table/command.ts';

export const explain = defineCommand({
  path: 'explain',
  summary: 'show what a minion gets, and which scope each key comes from',
  details:
    'Asked of a merger, as the master’s own request would be. Secrets are masked. With --with or --collection it shows what the minion would get: nothing is saved. FILE holds a list of changes, each with op (set or delete), the target and the name as the API has them, value and is_secret; the value of a secret is not sent. With --at the pillars are those of that moment; memberships, collections and tasks have no history, and are those of now, or those of --collection.',
  args: { minion: { help: 'minion' } },
  options: {
    master: { value: 'ID', required: true, help: 'its logical master' },
    pillarenv: { value: 'ENVS', help: 'environments, separated by commas (default: auto)' },
    name: { value: 'NAME', help: 'only this key' },
    at: { value: 'WHEN', help: 'as it was at a clock, or a time: RFC 3339, or a span such as 90m, 12h, 7d' },
    with: { value: 'FILE', help: 'suppose these changes, YAML or JSON; "-": from standard input' },
    collection: {
      value: 'ID',
      repeat: true,
      help: 'suppose it is a member of this collection, and of no other; several times, in order',
    },
    'omit-values': { help: 'no values: then a pillar with large ones fits an answer, up to some 20000 keys' },
  },
  examples: [
    ['explain shop-1.example --master salt-east', 'as a tree'],
    ['explain shop-1.example --master salt-east --at 12h', 'what it would have got twelve hours ago'],
    ['explain shop-1.example --master salt-east --with changes.yaml', 'what these changes would do'],
    ['explain shop-1.example --master salt-east --collection linux', 'what it would get as a member'],
    ['colonnade explain shop-1.example --master salt-east --json | jq .keys[].name', 'for a program'],
  ],
  async run(session, { args, options }) {
    const { master, pillarenv, name, with: file, collection } = options;
    const values = options['omit-values'] ? 'omit' : undefined;
    const at = options.at === undefined ? undefined : momentOf('at', options.at);
    const asked = { master, minion_id: args.minion, pillarenv, values, at };
    const isPreview = file !== undefined || collection.length > 0;
    const { value } = isPreview
      ? await session.api().call('POST', '/explain/preview', {
          ...withoutUndefined(asked),
          ...(file === undefined ? {} : { changes: await readChanges(file) }),
          ...(collection.length === 0 ? {} : { collections: [...collection] }),
        })
      : await session.api().call('GET', `/explain${queryOf({ ...asked, at: at?.toString() })}`);
    if (session.json) return await session.out.json(value ?? null);
    for (const line of explanationLines(asObject(value), name)) await session.out.line(line);
  },
});

/** @throws ColonnadeError `misconfigured` | `value_invalid` */
async function readChanges(file: string): Promise<Value[]> {
  const as = /\.json$/iu.test(file) ? 'json' : 'yaml';
  const found = await readValue({ 'value-file': file, as }, false);
  if (!Array.isArray(found)) throw usageError(`${file}: must hold a list of changes`);
  return found.map(withoutSecret);
}

/** Nobody needs it to say what the minion gets. */
function withoutSecret(change: Value): Value {
  const { value: _, ...rest } = asObject(change);
  return rest.is_secret === true ? rest : change;
}

function withoutUndefined(fields: Readonly<Record<string, Value | undefined>>) {
  const given = Object.entries(fields).filter((field): field is [string, Value] => field[1] !== undefined);
  return Object.fromEntries(given);
}
