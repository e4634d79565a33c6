import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';

const RETRY_MS = 250;
const SQLITE_BUSY = 5;

export type FileLock = Disposable;

/**
 * Waits until this process is the only one that writes what the file stands for. The lock is the operating system's
 * (SQLite takes it, since Node has no call for that): it ends with the process that holds it, however that ends, so the next
 * replica takes over at once and a clock decides nothing. A process that is merely stopped keeps it, and writes nothing.
 * @returns undefined at the signal
 * @throws ColonnadeError `unavailable` when the file cannot be locked at all
 */
export async function acquireFileLock(
  file: string,
  signal: AbortSignal,
  onWait: () => void,
): Promise<FileLock | undefined> {
  for (let told = false; !signal.aborted; told = true) {
    const lock = tryLock(file);
    if (lock !== undefined) return lock;
    if (!told) onWait();
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
  }
  return undefined;
}

function tryLock(file: string): FileLock | undefined {
  const database = openDatabase(file);
  try {
    database.exec('BEGIN EXCLUSIVE');
    return { [Symbol.dispose]: () => database.close() };
  } catch (thrown) {
    database.close();
    if ((thrown as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw unusable(thrown);
  }
}

function openDatabase(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: 0 });
  } catch (thrown) {
    throw unusable(thrown);
  }
}

function unusable(cause: unknown): ColonnadeError {
  return new ColonnadeError('unavailable', 'the lock file cannot be locked', { cause });
}
