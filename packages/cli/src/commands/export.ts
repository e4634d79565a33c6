import { open, rename, rm } from 'node:fs/promises';
import { ColonnadeError } from '@colonnade/contracts';
import { usageError } from '../exit-codes.ts';
import { queryOf } from '../shared/pages.ts';
import { defineCommand } from '../table/command.ts';
import { escapeText } from '../terminal/escape.ts';
import { createProgress } from '../terminal/progress.ts';

const MIB = 1024 * 1024;

export const exportCommand = defineCommand({
  path: 'export',
  summary: 'write the whole estate of one moment as YAML or JSON',
  details:
    'Secrets leave it sealed, for which the token must be allowed to reveal, or not at all. An export that is cut off ends with an error; with --output-file it then leaves no file.',
  options: {
    format: {
      value: 'FORMAT',
      choices: ['yaml', 'json'],
      help: 'yaml (default), or json: one record a line',
    },
    secrets: { value: 'HOW', choices: ['sealed', 'omit'], help: 'sealed (default), or omit' },
    'output-file': { value: 'FILE', help: 'into a new file of mode 0600, whole or not at all' },
  },
  examples: [
    ['export --output-file estate.yaml', 'into a private file'],
    ['export --secrets omit --format json', 'on standard output'],
  ],
  async run({ api, out, json, signal }, { options }) {
    const format = options.format ?? (json ? 'json' : 'yaml');
    const path = `/export${queryOf({ format, secrets: options.secrets })}`;
    const response = await api().stream('GET', path);
    const file = options['output-file'];
    const draft = file === undefined ? undefined : await openDraft(file);
    using progress = createProgress();
    let bytes = 0;
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) {
        signal.throwIfAborted();
        bytes += chunk.length;
        if (file !== undefined || !out.isTerminal) progress.say(`${(bytes / MIB).toFixed(1)} MiB`);
        if (draft !== undefined) await draft.handle.writeFile(chunk);
        else await out.write(out.isTerminal ? escapeText(decoder.decode(chunk, { stream: true })) : chunk);
      }
      await draft?.finish();
    } catch (cause) {
      await draft?.drop();
      if (signal.aborted || cause instanceof ColonnadeError) throw cause;
      throw new ColonnadeError('unavailable', `the export was cut off after ${bytes} bytes`, { cause });
    }
  },
});

/** @throws ColonnadeError `misconfigured` when it cannot be made, or is there already */
async function openDraft(file: string) {
  const failed = (thrown: NodeJS.ErrnoException) =>
    usageError(`${file} cannot be made: ${thrown.code ?? thrown.message}`);
  // The name is taken at once, so that nobody else's file is overwritten at the end.
  const name = await open(file, 'wx', 0o600).catch((thrown) => Promise.reject(failed(thrown)));
  await name.close();
  const draft = `${file}.part`;
  const handle = await open(draft, 'wx', 0o600).catch(async (thrown) => {
    await rm(file, { force: true });
    throw failed(thrown);
  });
  return {
    handle,
    async finish() {
      await handle.sync();
      await handle.close();
      await rename(draft, file);
    },
    async drop() {
      await handle.close();
      await rm(draft, { force: true });
      await rm(file, { force: true });
    },
  };
}
