import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LIMITS } from '@colonnade/contracts';
import { type Value, ValueError, valueFromYaml } from '@colonnade/value';
import { usageError } from '../exit-codes.ts';
import { ask, canAsk } from '../terminal/prompt.ts';

/** A value in a private file that a person edits. It goes when disposed of, unless it is kept. */
export type Draft = AsyncDisposable & {
  /** Opens the editor until the text is a value. @throws ColonnadeError `misconfigured` when the editor fails or the person gives up */
  edit(): Promise<Value>;
  /** @returns where the text stays */
  keep(): string;
};

/** @param name of the file; characters that do not belong into one are left out */
export async function openDraft(name: string, text: string, env: NodeJS.ProcessEnv): Promise<Draft> {
  const dir = await mkdtemp(path.join(tmpdir(), 'colonnade-edit-'));
  const file = path.join(dir, `${name.replaceAll(/[^A-Za-z0-9_-]/gu, '_').slice(0, 64)}.yaml`);
  await writeFile(file, text, { mode: 0o600, flag: 'wx' });
  let kept = false;
  return {
    async edit() {
      for (;;) {
        await runEditor(file, env);
        const fault = await readDraft(file);
        if (typeof fault !== 'string') return fault.value;
        process.stderr.write(`${fault}\n`);
        const again = canAsk() ? await ask('Edit again? (yes/no) ') : 'no';
        if (again.trim().toLowerCase().startsWith('y')) continue;
        kept = true;
        throw usageError(`not YAML that can be kept; the text is in ${file}`);
      }
    },
    keep() {
      kept = true;
      return file;
    },
    async [Symbol.asyncDispose]() {
      if (!kept) await rm(dir, { recursive: true, force: true });
    },
  };
}

async function readDraft(file: string): Promise<{ value: Value } | string> {
  try {
    const limits = { maxBytes: LIMITS.httpBodyBytes, maxDepth: LIMITS.valueDepth };
    return { value: valueFromYaml(await readFile(file), limits) };
  } catch (thrown) {
    if (thrown instanceof ValueError) return thrown.message;
    throw thrown;
  }
}

async function runEditor(file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const editor = env.VISUAL || env.EDITOR || 'vi';
  // As git does: the variable may hold options, so the shell reads it; the file is an argument of its own.
  const child = spawn('sh', ['-c', `${editor} "$@"`, editor, file], { stdio: 'inherit', env });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code !== 0)
    throw usageError(`the editor "${editor}" ended with ${code ?? 'a signal'}; nothing was changed`);
}
