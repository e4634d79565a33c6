import { writeFile } from 'node:fs/promises';
import { canonicalText } from '@colonnade/value';
import { usageError } from '../../exit-codes.ts';
import { PILLAR_ARGUMENT, pathOf, resolvePid, TARGET_OPTIONS } from '../../shared/target.ts';
import { asObject } from '../../shared/view.ts';
import { defineCommand } from '../../table/command.ts';
import { escapeText } from '../../terminal/escape.ts';

export const pillarReveal = defineCommand({
  path: 'pillar reveal',
  summary: 'show the value of a secret',
  details:
    'The act is on record. A text is printed as it is, in a pipe without a line end of ours; anything else as JSON.',
  args: PILLAR_ARGUMENT,
  options: {
    ...TARGET_OPTIONS,
    'output-file': { value: 'FILE', help: 'write it to a new file of mode 0600 instead' },
  },
  examples: [
    ['pillar reveal db_password --collection shop', 'on the terminal'],
    ['pillar reveal tls_key --collection shop --output-file tls.key', 'into a private file'],
  ],
  async run(session, { args, options }) {
    const { out, json } = session;
    const api = session.api();
    const pid = await resolvePid(api, args.pillar, options);
    const { value } = await api.call('POST', `${pathOf(pid)}/reveal`);
    if (json && options['output-file'] === undefined) return await out.json(value ?? null);
    const secret = asObject(value).value ?? null;
    const text = json
      ? canonicalText(value ?? null)
      : typeof secret === 'string'
        ? secret
        : canonicalText(secret);
    if (options['output-file'] !== undefined) {
      await writeFile(options['output-file'], text, { mode: 0o600, flag: 'wx' }).catch(
        (thrown: NodeJS.ErrnoException) => {
          throw usageError(`${options['output-file']} cannot be made: ${thrown.code ?? thrown.message}`);
        },
      );
      return;
    }
    await out.write(out.isTerminal ? `${escapeText(text)}\n` : text);
  },
});
