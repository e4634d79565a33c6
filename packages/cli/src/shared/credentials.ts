import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';

/** Writes what is shown only once, each into a new file of mode 0600 in a folder of mode 0700. */
export async function saveCredentials(dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  for (const [name, text] of Object.entries(files)) {
    await writeFile(path.join(dir, name), `${text}\n`, { mode: 0o600, flag: 'wx' });
  }
}

/** Whether files of these names can be made there. Asked before what they will hold is made. @throws ColonnadeError `misconfigured` */
export async function checkFolder(dir: string, names: readonly string[]): Promise<void> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const name of names) {
      const file = path.join(dir, name);
      await writeFile(file, '', { mode: 0o600, flag: 'wx' });
      await rm(file);
    }
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    throw new ColonnadeError('misconfigured', `new files cannot be made in ${dir}: ${code ?? message}`);
  }
}
