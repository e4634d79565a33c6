import { mkdirSync, readFileSync } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { ColonnadeError } from '@colonnade/contracts';

/**
 * Makes a folder and keeps a second start out of it. The lock is a file that names our process; one whose process is
 * gone is taken over, also when another process has its number today.
 * @throws ColonnadeError `conflict` that names the process which holds the folder, `unavailable` when it cannot be made
 */
export async function lockFolder(dir: string): Promise<AsyncDisposable> {
  makeFolder(dir);
  const file = path.join(dir, 'lock');
  for (let attempt = 0; attempt < 3; attempt++) {
    const handle = await open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return undefined;
      throw cannotUse(dir, error);
    });
    if (handle !== undefined) {
      await handle.writeFile(`${process.pid} ${birthOf(process.pid)}\n`);
      await handle.close();
      return { [Symbol.asyncDispose]: () => rm(file, { force: true }) };
    }
    const [pid = '', birth = ''] = (await readFile(file, 'utf8').catch(() => '')).trim().split(' ');
    if (isHeld(Number(pid), birth)) {
      throw new ColonnadeError(
        'conflict',
        `${dir} is in use by process ${pid}; stop it, or choose another --data (its lock is ${file})`,
      );
    }
    await rm(file, { force: true });
  }
  throw new ColonnadeError('conflict', `${dir} is being locked by others at this moment; try again`);
}

/** One level after the other: Node's own recursive mkdir never returns below `/proc`. */
function makeFolder(dir: string): void {
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (thrown) {
    const error = thrown as NodeJS.ErrnoException;
    if (error.code === 'EEXIST') return;
    if (error.code !== 'ENOENT' || path.dirname(dir) === dir) throw cannotUse(dir, error);
    makeFolder(path.dirname(dir));
    try {
      mkdirSync(dir, { mode: 0o700 });
    } catch (again) {
      throw cannotUse(dir, again as NodeJS.ErrnoException);
    }
  }
}

function cannotUse(dir: string, error: NodeJS.ErrnoException): ColonnadeError {
  return new ColonnadeError(
    'unavailable',
    `${dir} cannot be used as the data folder (${error.code}); choose a folder you may write to with --data`,
    { cause: error },
  );
}

function isHeld(pid: number, birth: string): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  return birth === birthOf(pid);
}

/** When a process began, as boot and clock tick; nothing where there is no /proc. */
function birthOf(pid: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold blanks; the start is the 20th field after it.
    return `${boot}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return '';
  }
}
