import { ColonnadeError } from '@colonnade/contracts';
import { valuesEqual, valueToYaml } from '@colonnade/value';
import { createTwoFilesPatch } from 'diff';
import type { Session } from '../../session.ts';
import { openDraft } from '../../shared/draft.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { asObject, pillarFields, show } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { escapeText } from '../../terminal/escape.ts';

export const pillarEdit = defineCommand({
  path: 'pillar edit',
  summary: 'edit the value of a plain pillar in $EDITOR',
  details:
    'As YAML, in a private temporary file. When somebody changed the pillar meanwhile, nothing is overwritten: what they changed is shown, and your text is kept.',
  args: PILLAR_ARGUMENT,
  options: TARGET_OPTIONS,
  examples: [
    ['pillar edit vhosts --collection shop', 'with $VISUAL or $EDITOR'],
    ['EDITOR="code --wait" colonnade pillar edit motd --root', 'with an editor of its own window'],
  ],
  async run(session, { args, options }) {
    const api = session.api();
    const path = pathOf(await resolvePid(api, args.pillar, options));
    const read = await api.call('GET', path);
    const { value: before = null, is_secret, name } = asObject(read.value);
    if (is_secret === true) {
      throw new ColonnadeError(
        'secret_immutable',
        'a secret is never written to a file: use "pillar replace"',
      );
    }
    await using draft = await openDraft(String(name), valueToYaml(before), session.env);
    const value = await draft.edit();
    if (valuesEqual(before, value)) return session.out.note('nothing was changed');
    const etag = read.headers.get('etag') ?? '';
    const answer = await api.call('PUT', path, { value }, { 'if-match': etag }).catch(async (thrown) => {
      const file = draft.keep();
      session.out.note(`your text is kept in ${file}`);
      if (thrown instanceof ColonnadeError && thrown.code === 'precondition_failed') {
        await showTheirs(session, path, valueToYaml(before));
      }
      throw thrown;
    });
    await show(session, answer.value, pillarFields);
  },
});

async function showTheirs(session: Session, path: string, before: string): Promise<void> {
  const { value } = await session.api().call('GET', path);
  const theirs = valueToYaml(asObject(value).value ?? null);
  const patch = createTwoFilesPatch('as you read it', 'as it is now', before, theirs);
  process.stderr.write(escapeText(patch));
}
