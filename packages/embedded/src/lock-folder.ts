import { mkdir, open, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * Keeps a second start out of a data folder. The lock is a file with our pid; one whose process is gone is taken over.
 * @throws ColonnadeError `conflict` that names the process which holds the folder
 */
export async function lockFolder(dir: string): Promise<AsyncDisposable> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const file = path.join(dir, 'lock');
  for (let attempt = 0; attempt < 3; attempt++) {
    const handle = await open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return undefined;
      throw new ColonnadeError('unavailable', `cannot write to ${dir}: ${error.code}`, { cause: error });
    });
    if (handle !== undefined) {
      await handle.writeFile(`${process.pid}\n`);
      await handle.close();
      return { [Symbol.asyncDispose]: () => rm(file, { force: true }) };
    }
    const holder = Number((await readFile(file, 'utf8').catch(() => '')).trim());
    if (isAlive(holder)) {
      throw new ColonnadeError(
        'conflict',
        `${dir} is in use by process ${holder}; stop it, or choose another --data`,
      );
    }
    await rm(file, { force: true });
  }
  throw new ColonnadeError('conflict', `${dir} is being locked by others at this moment; try again`);
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
