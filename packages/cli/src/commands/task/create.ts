import type { ValueObject } from '@colonnade/value';
import { usageError } from '../../exit-codes.ts';
import type { Session } from '../../session.ts';
import { checkFolder, saveCredentials } from '../../shared/credentials.ts';
import { NAMED_VALUES_OPTIONS, readNamedValues } from '../../shared/named-values.ts';
import { countOf } from '../../shared/pages.ts';
import { allFields, asObject, show, textOf } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';

export const taskCreate = defineCommand({
  path: 'task create',
  summary: 'make a task of a template, with its pillars',
  args: { template: { help: 'task template' } },
  options: {
    minion: { value: 'MASTER/ID', repeat: true, help: 'whose task it is; several times' },
    collection: { value: 'ID', repeat: true, help: 'and its members, and those below it; several times' },
    ...NAMED_VALUES_OPTIONS,
    default: {
      value: 'NAME',
      repeat: true,
      help: 'your default of this name as it is, secrets too; several times',
    },
    save: { value: 'DIR', help: 'write its identity to the file "token" there, mode 0600' },
    'save-as-defaults': { help: 'also save the values as your defaults' },
    'expires-in': {
      value: 'SECONDS',
      help: 'until nobody gets its pillars any more (default: until it ends)',
    },
  },
  examples: [
    ['task create deploy --minion salt-east/shop-1.example --values values.yaml', 'for one minion'],
    ['task create deploy --collection shop --default version --secrets secrets.yaml', 'for a collection'],
  ],
  async run(session, { args, options }) {
    const minions = options.minion.map((text) => {
      const [, master, minion_id] = /^([^/]+)\/(.+)$/u.exec(text) ?? [];
      if (master === undefined || minion_id === undefined)
        throw usageError(`--minion: "${text}" is not MASTER/ID`);
      return { master, minion_id };
    });
    const expires = options['expires-in'];
    const body: ValueObject = {
      tpl_id: args.template,
      pillars: await readNamedValues(options),
      ...(minions.length === 0 ? {} : { minions }),
      ...(options.collection.length === 0 ? {} : { collections: [...options.collection] }),
      ...(options.default.length === 0 ? {} : { from_defaults: [...options.default] }),
      ...(options['save-as-defaults'] ? { save_as_defaults: true } : {}),
      ...(expires === undefined ? {} : { expires_in_s: BigInt(countOf('expires-in', expires)) }),
    };
    const api = session.api();
    if (options.save !== undefined) await checkFolder(options.save, ['token']);
    const { value } = await api.call('POST', '/tasks', body);
    // Its identity is for whatever runs the task, and is not to be seen on a screen that shows a task.
    const { identity, identity_refused: refused, ...task } = asObject(value);
    if (identity === null) session.out.note(`the task has no identity: ${textOf(asObject(refused).detail)}`);
    else if (options.save !== undefined) await saveIdentity(session, options.save, asObject(identity));
    await show(session, task, allFields);
  },
});

async function saveIdentity(session: Session, dir: string, identity: ValueObject): Promise<void> {
  await saveCredentials(dir, { token: textOf(identity.token) });
  session.out.note(`token is in ${dir}`);
}
