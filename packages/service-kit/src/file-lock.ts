import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { ColonnadeError } from '@colonnade/contracts';

const RETRY_MS = 250;
const SQLITE_BUSY = 5;
const LOOK_EVERY_MS = 250;

export type FileLock = Disposable & {
  /** False when the file is not at its path any more: somebody removed or replaced it, and others can lock the new one. */
  isHeld(): boolean;
};

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

/**
 * Which file is at a path: no other is it, as long as somebody has it open.
 * @returns undefined: there is none, or nobody can say
 */
export function fileMark(file: string): string | undefined {
  try {
    const { dev, ino } = statSync(file, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** A right that can be taken from its holder, and the signal that it was. Once lost it stays so. */
export type Hold = Disposable & {
  /** Looks, too. */
  isHeld(): boolean;
  lost: AbortSignal;
  giveUp(): void;
};

/** Looks whenever it is asked and four times a second whether the right is there; disposing ends the looking. */
export function watchHold(look: () => boolean): Hold {
  const lost = new AbortController();
  const isHeld = () => {
    if (!lost.signal.aborted && !look()) lost.abort();
    return !lost.signal.aborted;
  };
  const timer = setInterval(isHeld, LOOK_EVERY_MS).unref();
  return {
    isHeld,
    lost: lost.signal,
    giveUp: () => lost.abort(),
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function tryLock(file: string): FileLock | undefined {
  const database = lock(file);
  if (database === undefined) return undefined;
  const mark = fileMark(file);
  // What was replaced between opening and this is not what the others lock.
  const other = mark === undefined ? undefined : lock(file);
  if (mark === undefined || other !== undefined) {
    other?.close();
    database.close();
    return undefined;
  }
  return { isHeld: () => fileMark(file) === mark, [Symbol.dispose]: () => database.close() };
}

/** @returns undefined: another has it */
function lock(file: string): DatabaseSync | undefined {
  const database = openDatabase(file);
  try {
    database.exec('BEGIN EXCLUSIVE');
    return database;
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
